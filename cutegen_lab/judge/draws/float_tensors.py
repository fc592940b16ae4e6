"""Functions that structured draws share: which inputs to change, along which dimension, within which range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.values import between, moderate_normal
from cutegen_lab.problems.dtypes import TORCH

SIZES = (1e-30, 1e-1)
# Minimum number of output elements for non-finite inputs: fewer may all be non-finite because of one input element.
LEAST_OUTPUT = 64
TILE_COLUMNS = 64  # maximum number of adjacent columns that a mask hides
_PARTNERS = 8  # minimum size of a dimension that two inputs count as summed over

Values = dict[int, torch.Tensor]  # values by index of the input
Size = TypeVar("Size", float, torch.Tensor)
FloatDraw = Callable[[Workload, torch.Generator], Values]


def floats(workload: Workload) -> Iterator[tuple[int, TensorSpec]]:
    """(index, spec) of each non-empty float input."""
    return ((at, spec) for at, spec in enumerate(workload.inputs) if spec.dtype.is_float and spec.numel)


def maskable(workload: Workload) -> list[tuple[int, TensorSpec]]:
    """Float inputs of two dimensions or more that can hold infinities."""
    return [(at, spec) for at, spec in floats(workload) if len(spec.shape) > 1 and not spec.dtype.is_float8]


def one_of_the_largest(workload: Workload, g: torch.Generator, turn: int | None = None) -> tuple[int, TensorSpec]:
    """(index, spec) of a float input with at least half as many elements as the largest: a random one, or number
    ``turn`` of these (modulo their number)."""
    most = max(spec.numel for _, spec in floats(workload))
    largest = [(at, spec) for at, spec in floats(workload) if 2 * spec.numel >= most]
    return largest[random_below(len(largest), g) if turn is None else turn % len(largest)]


def mostly_last(spec: TensorSpec, share: float, g: torch.Generator) -> int:
    """-1 (the last dimension) with probability ``share``, or if there is only one dimension; otherwise a random one of
    the others."""
    return -1 if len(spec.shape) < 2 or between(0, 1, g) < share else random_below(len(spec.shape) - 1, g)


def along_any(
    one: Callable[[torch.Tensor, TensorSpec, torch.Generator], torch.Tensor],
) -> Callable[[torch.Tensor, TensorSpec, torch.Generator], torch.Tensor]:
    """A draw that applies ``one`` along the last dimension or, half of the time, along a random one."""

    def turned(values: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> torch.Tensor:
        dim = mostly_last(spec, 0.5, g)
        if dim == -1:
            return one(values, spec, g)
        rows = values.transpose(dim, -1).contiguous()
        return one(rows, replace(spec, shape=tuple(rows.shape), strides=()), g).transpose(dim, -1).contiguous()

    return turned


def by_tensor(one: Callable[[torch.Tensor, TensorSpec, torch.Generator], torch.Tensor]) -> FloatDraw:
    """A draw that applies ``one`` to normal values of every float input."""

    def drawn(workload: Workload, g: torch.Generator) -> Values:
        return {at: one(moderate_normal(spec.shape, g), spec, g) for at, spec in floats(workload)}

    return drawn


def exponent_reach(dtype: DType, wide: float) -> float:
    """``wide``, limited to the exponent range of a narrow type."""
    return min(wide, 5.0) if dtype is DType.F16 or dtype.is_float8 else wide


def fitted_decades(dtype: DType, decades: Size) -> Size:
    """Negative decimal exponents from the range of ``SIZES``, scaled to the range of a narrow type."""
    if dtype is DType.F16:
        return decades * 0.22
    return decades * 0.05 if dtype.is_float8 else decades


def random_below(count: int, g: torch.Generator) -> int:
    """A random integer from 0 to ``count`` − 1."""
    return int(torch.randint(count, (), generator=g))


def partners(workload: Workload) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Pairs of (input, dimension) that are summed over together: of equal size and in no output. Each dimension is in
    one pair at most."""
    shown = {size for spec in workload.outputs for size in spec.shape}
    found: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for (i, a), (j, b) in combinations(floats(workload), 2):
        for m, size in enumerate(a.shape):
            taken = {place for pair in found for place in pair}
            if size >= _PARTNERS and size not in shown and (i, m) not in taken:
                places = [(j, n) for n, other in enumerate(b.shape) if other == size and (j, n) not in taken]
                found += [((i, m), place) for place in places[:1]]
    return found


def takes_non_finite(workload: Workload) -> bool:
    """Whether there are enough outputs to compare after a few non-finite inputs."""
    return min((out.numel for out in workload.outputs), default=0) >= LEAST_OUTPUT


def finfo(dtype: DType) -> torch.finfo:
    """``finfo`` of at most 32 bits: doubles are drawn within the range of floats."""
    return torch.finfo(torch.float32 if dtype is DType.F64 else TORCH[dtype])

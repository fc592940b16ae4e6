"""Draws the constants that a reference and a kernel contain. Thresholds and special values (a missing value, a padding
token) only have an effect if an input equals them or is close.

As with a fuzzer's dictionary (libFuzzer, AFL): a random number hardly ever equals a constant.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.judge.draws.values import assign_kinds, moderate_normal, rand
from cutegen_lab.problems.dtypes import TORCH

_FLOAT = re.compile(r"\b0[fF]([0-9A-Fa-f]{8})\b|\b0[dD]([0-9A-Fa-f]{16})\b")
_INTEGER = re.compile(
    r"\b(?:setp?|min|max|sub|add|xor|mov)\.[\w.:]{1,40}[ \t]+[^;\n]{0,100}?[ ,]"
    r"(?:(-?\d{1,19})|0[xX]([0-9A-Fa-f]{1,16}))[ \t]*[;,]"
)
# Operators that make tensors of a reference's numbers.
_SCALAR_TENSORS = ("lift_fresh", "lift_fresh_copy", "scalar_tensor")
_MOST_ELEMENTS = 64  # maximum number of elements that are recorded of a tensor of constants
_MOST = 256  # maximum number of the kernel's constants in one draw
_LARGEST_EXPONENT = 60.0  # largest power of two of a constant: its square is finite
_GROUP_WIDTH = 12.0  # range of powers of two within one row
# Shares: of constants among the elements; of neighbours among these; of negated ones among these.
_SHARE, _NEIGHBOURS, _NEGATIVE = 0.3, 0.4, 0.25


@dataclass(frozen=True)
class Constants:
    """Constants other than 0, by source."""

    by_reference: tuple[float, ...] = ()
    """Numbers in the reference."""
    by_kernel: tuple[float, ...] = ()
    """Numbers in the kernel's PTX."""

    def __iter__(self) -> Iterator[float]:
        yield from self.by_reference
        yield from self.by_kernel


def constants_in_ptx(ptx: str) -> tuple[float, ...]:
    """Floating-point constants of the PTX, its integer operands, and the floats whose bits these are."""
    found = [_float_of_bits(match[1] or match[2]) for match in _FLOAT.finditer(ptx)]
    for match in _INTEGER.finditer(ptx):
        number = int(match[1]) if match[1] else int(match[2], 16)
        found.append(float(number))
        if -(1 << 31) <= number < 1 << 32 and abs(number) > 1 << 20:
            found.append(_float_of_bits(f"{number & 0xFFFFFFFF:08x}"))
    return _worth_drawing(found)


def constants_in_reference(run: Callable[[], object]) -> tuple[float, ...]:
    """Numbers that a reference passes to PyTorch's operators while it runs."""
    with _Scalars() as seen:
        run()
    return _worth_drawing(seen.numbers)


def draw_constants(spec: TensorSpec, named: Constants, generator: torch.Generator, most: int) -> torch.Tensor | None:
    """Values of ``spec``, some of them constants or their neighbours, of similar magnitude within a row. Integers are
    at most ``most``; indices stay in range. None if there are no constants."""
    theirs = [n for n in named.by_reference if _fits(n, spec, most)]
    kernels = _random_subset([n for n in named.by_kernel if _fits(n, spec, most)], _MOST, generator)
    numbers = [*theirs * max(len(kernels) // max(len(theirs), 1), 1), *kernels]  # half of them from the reference
    if not numbers or not spec.numel:
        return None
    shape = (spec.numel // spec.shape[-1], spec.shape[-1]) if spec.shape else (1, 1)
    chosen = _pick(numbers if spec.dtype.is_float else [float(round(n)) for n in numbers], shape, spec, generator)
    step = torch.where(rand(shape, generator) < 0.5, -1.0, 1.0).double()
    step = torch.where(rand(shape, generator) < _NEIGHBOURS, step, 0.0)
    some = rand(shape, generator) < _SHARE
    if spec.dtype.is_float:
        chosen = chosen * (1 + step * spec.dtype.eps)
        chosen = torch.where(rand(shape, generator) < _NEGATIVE, -chosen, chosen)
        values = torch.where(some, chosen, moderate_normal(shape, generator).double())
    else:
        low, high = _range(spec, most)
        plain = torch.randint(min(high, 1000) + 1, shape, generator=generator)
        values = torch.where(some, (chosen + step).long(), plain).clamp(low, high)
    return values.view(spec.shape).to(TORCH[spec.dtype])


def _pick(numbers: list[float], shape: tuple[int, int], spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    """One of ``numbers`` for each element of (rows, columns). Floats within a row (with few rows: within part of a row)
    have similar magnitude."""
    groups = _by_magnitude(numbers) if spec.dtype.is_float else [numbers]
    longest = max(map(len, groups))
    table = torch.tensor([[group[i % len(group)] for i in range(longest)] for group in groups], dtype=torch.float64)
    return table[assign_kinds(len(groups), *shape, generator), (rand(shape, generator) * longest).long()]


def _range(spec: TensorSpec, most: int) -> tuple[int, int]:
    """Smallest and largest integer that is drawn."""
    if spec.below:
        return 0, spec.below - 1
    info = torch.iinfo(TORCH[spec.dtype])
    return max(info.min, -most), min(info.max, most)


def _fits(number: float, spec: TensorSpec, most: int) -> bool:
    if not spec.dtype.is_float:
        low, high = _range(spec, most)
        return number == round(number) and low <= number <= high
    info = torch.finfo(torch.float32 if spec.dtype.itemsize == 8 else TORCH[spec.dtype])
    return bool(info.smallest_normal <= abs(number) <= info.max / 4)


def _by_magnitude(numbers: list[float]) -> list[list[float]]:
    """``numbers`` in groups of similar magnitude: within ``_GROUP_WIDTH`` powers of two."""
    groups: dict[int, list[float]] = {}
    for number in numbers:
        groups.setdefault(math.floor(math.log2(abs(number)) / _GROUP_WIDTH), []).append(number)
    return [*groups.values()]


def _random_subset(numbers: list[float], count: int, generator: torch.Generator) -> list[float]:
    if len(numbers) <= count:
        return numbers
    order = torch.randperm(len(numbers), generator=generator, device=generator.device)[:count].tolist()
    return [numbers[i] for i in order]


def _worth_drawing(numbers: Iterable[float]) -> tuple[float, ...]:
    """Sorted constants without duplicates, zeros, ones (which are drawn anyway) and extreme values."""
    farthest = 2.0**_LARGEST_EXPONENT
    kept = (n for n in numbers if math.isfinite(n) and 1 / farthest <= abs(n) <= farthest and abs(n) != 1.0)
    return tuple(sorted(dict.fromkeys(kept)))


def _float_of_bits(bits: str) -> float:
    return float(struct.unpack(">f" if len(bits) == 8 else ">d", bytes.fromhex(bits))[0])


class _Scalars(TorchDispatchMode):
    """Collects scalar arguments of operators (``aten.gt.Scalar``), and small tensors made for them."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[float] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {**dict(zip((a.name for a in func._schema.arguments), args, strict=False)), **(kwargs or {})}
        for argument in func._schema.arguments:
            value = given.get(argument.name)
            number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
            if number is not None and any(kind in str(argument.type) for kind in ("number", "float", "Scalar")):
                self.numbers.append(number)
        if func.overloadpacket.__name__ in _SCALAR_TENSORS and isinstance(result, torch.Tensor):
            self.numbers += map(float, result.reshape(-1)[:_MOST_ELEMENTS].tolist())
        return result

"""Draws inputs: fresh values every time, from distributions that expose different mistakes.

Scale and mean of each draw follow from its secret seed, so that a kernel cannot recognise a distribution by its
moments.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import replace

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.constants import Constants, draw_constants
from cutegen_lab.judge.draws.distributions import BEYOND_F16, DISTRIBUTIONS
from cutegen_lab.judge.draws.integers import (
    NO_INTEGER_PATTERN,
    NO_PATTERN,
    SIGNED,
    WHOLE_RANGE,
    extreme_integers,
    integer_range,
    plain_integers,
    some_rows,
    terms,
    with_multiples,
)
from cutegen_lab.judge.draws.names import AROUND, CONSTANTS, FLOAT_LIMITS, MIXED_ROWS, MULTIPLES, PATCHWORK, WIDE_RANGE
from cutegen_lab.judge.draws.patterns import with_pattern
from cutegen_lab.judge.draws.rules import apply_rules
from cutegen_lab.judge.draws.structured import structured
from cutegen_lab.judge.draws.values import TILE, Shape, between, moderate_normal, normal, random_position
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.problems.tensors import laid_out, placed

# Draws that may also put their special value into a parameter. Infinity is not among them: with an infinite parameter
# some correct formulas give NaN and others do not.
_PARAMETER_VALUES = {"nan": math.nan, "zeros": 0.0}
_UNUSUAL = 0.06  # share of unusual numbers in a trained parameter
_IN_PARAMETERS = 0.5  # probability of a special value in a parameter
_FLOAT_VALUES = ("bits", "zeros", CONSTANTS, FLOAT_LIMITS)  # draws whose doubles stay representable as floats


def draw(
    workload: Workload, distribution: str, seed: int, initial: Mapping[str, torch.Tensor] | None = None,
    where: str = "cpu", named: Constants | None = None, turn: int | None = None, local: frozenset[int] = frozenset(),
) -> list[torch.Tensor]:  # fmt: skip
    """Tensors for every input of ``workload``, in its layouts, on the torch device ``where``. Values depend only on
    (distribution, seed) and the kind of device: a GPU's generator gives other numbers than a CPU's.

    ``initial`` are a Model's parameters and buffers. On normal values and half of the other draws they stay near their
    own values but never equal them, so that a weight of one or a bias of zero cannot be skipped; on the rest they are
    as training may leave them: of either sign (except variances) and other sizes. ``named`` are the constants for the
    draws in ``WITH_CONSTANTS``. ``turn``: which of the largest inputs (modulo their number) a patchwork or a mosaic
    changes; None for a random one. ``local``: which inputs may hold a few non-finite numbers in a mosaic
    (:func:`local_inputs`). Doubles are made not representable as floats (except in draws such as zeros): a kernel that
    converts them to floats has a relative error of 2^-26 or more.
    """
    with _default_device(where):
        generator = torch.Generator(where).manual_seed(seed)
        values_of = structured(distribution, workload, generator, named, turn, local) or {}
        tensors = []
        for at, spec in enumerate(workload.inputs):
            if initial and spec.name in initial and spec.dtype.is_float:
                value = _resized(initial[spec.name].to(where), spec.shape)
                near = distribution == "normal" or between(0, 1, generator) < 0.5
                values = (_near_initial if near else _as_trained)(value, spec, generator).to(TORCH[spec.dtype])
                special = distribution in _PARAMETER_VALUES and values.numel() > 0
                if special and between(0, 1, generator) < _IN_PARAMETERS:
                    values.view(-1)[random_position(spec.shape, generator)] = _PARAMETER_VALUES[distribution]
            elif at in values_of:
                values = values_of[at].to(TORCH[spec.dtype])
            elif distribution == CONSTANTS and (some := _draw_constants(spec, named, generator, workload)) is not None:
                values = some
            else:
                values = _draw_one(spec, distribution, generator, workload)
            if spec.dtype is DType.F64 and distribution not in _FLOAT_VALUES:
                values = values.double() * (1 + between(0.25, 0.5, generator) * 2**-24)
            tensors.append(placed(values, spec))
        if distribution == MULTIPLES:
            tensors = with_multiples(tensors, workload, generator)
        return apply_rules(tensors, workload, generator)


def _default_device(where: str) -> contextlib.AbstractContextManager[object]:
    """Makes PyTorch create tensors on ``where``. Does nothing if PyTorch already does: its calls are slower inside the
    context."""
    return torch.device(where) if torch.get_default_device() != torch.device(where) else contextlib.nullcontext()


def _draw_constants(
    spec: TensorSpec, named: Constants | None, generator: torch.Generator, workload: Workload
) -> torch.Tensor | None:
    if named is None or spec.dtype is DType.BOOL:
        return None
    most = 0 if spec.dtype.is_float else integer_range(spec.dtype, WIDE_RANGE, terms(workload))[1] - 1
    return draw_constants(spec, named, generator, most)


def _near_initial(value: torch.Tensor, spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    noise = torch.rand((2, *spec.shape), generator=generator)
    return value * (1 + 0.1 * noise[0]) + 0.1 * noise[1]


def _as_trained(value: torch.Tensor, spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    """``value`` scaled by a factor from -2 to 2, with normal noise of its own size added; variances are scaled by
    powers of two. A few numbers have much more noise (4 to 64 times). A few variances are far smaller: near an epsilon,
    or below it."""
    noise = torch.randn(spec.shape, generator=generator)
    few = torch.rand(spec.shape, generator=generator) < _UNUSUAL
    extent = torch.rand(spec.shape, generator=generator)
    if "var" in spec.name:
        return value.abs() * torch.where(few, 10 ** (-8 * extent), (3 * noise.clamp(-2, 2)).exp2())
    size = float(value.double().square().mean().sqrt()) or 0.5
    return value * between(-2, 2, generator) + size * noise * torch.where(few, (2 + 4 * extent).exp2(), 1.0)


def _resized(value: torch.Tensor, shape: Shape) -> torch.Tensor:
    """``value`` in another workload's shape: repeated or truncated."""
    repeats = [-(-size // have) for size, have in zip(shape, value.shape, strict=True)]
    return value.repeat(repeats)[tuple(slice(size) for size in shape)] if value.dim() else value


def fill(workload: Workload, seed: int) -> list[torch.Tensor]:
    """Normal values for timing: one random tile repeated, gaps included; only the kind of values matters, and
    generating them is slow."""
    generator = torch.Generator().manual_seed(seed)
    tensors = []
    for spec in workload.inputs:
        one = replace(spec, shape=(min(spec.cosize, TILE),), strides=())
        tile = _draw_one(one, "normal", generator, workload)
        repeats = -(-spec.cosize // max(tile.numel(), 1))
        tensors.append(laid_out(tile if repeats == 1 else tile.repeat(repeats)[: spec.cosize], spec))
    return apply_rules(tensors, workload, generator)


def _draw_one(spec: TensorSpec, distribution: str, generator: torch.Generator, workload: Workload) -> torch.Tensor:
    if spec.dtype.is_float:
        if distribution.startswith(AROUND):
            mean = float(distribution.removeprefix(AROUND))
            values = normal(2 ** between(-2, 2, generator), mean, spec.shape, generator)
        else:
            wide = BEYOND_F16 if spec.dtype is DType.F32 else {}
            values = {**DISTRIBUTIONS, **wide}.get(distribution, moderate_normal)(spec.shape, generator)
        return values.to(TORCH[spec.dtype])
    if distribution in WHOLE_RANGE and spec.dtype is not DType.BOOL and not spec.below:
        return extreme_integers(spec, distribution, generator)
    values, kinds, below, others = plain_integers(spec, distribution, generator, workload)
    if distribution not in (NO_PATTERN if spec.below or spec.dtype is DType.BOOL else NO_INTEGER_PATTERN):
        by_rows = distribution in MIXED_ROWS
        values = with_pattern(spec.shape, values, kinds, distribution, generator, by_rows, below, others)
    floats = any(one.dtype.is_float for one in workload.inputs)
    if distribution == PATCHWORK and spec.dtype in SIGNED and spec.shape and not spec.below and not floats:
        values = torch.where(some_rows(spec, generator), ~values.abs(), values)  # rows of negative numbers only
    return values.to(TORCH[spec.dtype])

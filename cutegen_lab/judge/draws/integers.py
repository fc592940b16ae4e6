"""Draws integers, indices and booleans: of every magnitude, at the limits of their type, and with patterns."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.names import (
    FULL_RANGE,
    INTEGER_LIMITS,
    INTEGER_LIMITS_BUT_LEAST,
    LOG_INTEGERS,
    MULTIPLES,
    OVERFLOWING,
    PATCHWORK,
    ROW_INTEGERS,
    WIDE_RANGE,
)
from cutegen_lab.judge.draws.patterns import INDICES, LENGTHS, MASKS, Pattern
from cutegen_lab.judge.draws.values import assign_kinds, between
from cutegen_lab.problems.dtypes import TORCH
from cutegen_lab.problems.tensors import placed

NO_PATTERN = ("normal", "bits", "zeros")  # draws whose masks and indices have no pattern
# Draws whose other integers have no pattern.
NO_INTEGER_PATTERN = (*NO_PATTERN, *OVERFLOWING, INTEGER_LIMITS_BUT_LEAST, WIDE_RANGE)
_LENGTHS_BELOW = 1000
WHOLE_RANGE = (INTEGER_LIMITS, INTEGER_LIMITS_BUT_LEAST, LOG_INTEGERS, ROW_INTEGERS, MULTIPLES)
_MOST_QUOTIENT = 32
_AT_THE_END = 0.3  # share of rows that use the whole range of their type
INTEGER_RANGE = {DType.I64: 1000, DType.I32: 1000, DType.I16: 1000, DType.I8: 100, DType.U8: 256, DType.BOOL: 2}
SIGNED = (DType.I64, DType.I32, DType.I16, DType.I8)


def terms(workload: Workload) -> int:
    """Maximum number of terms that an output element may sum: the larger of a tensor's longest dimension and the
    product of its other dimensions, over all tensors."""
    sizes = [(max(t.shape), t.numel) for t in workload.tensors if t.numel and t.shape]
    return max((max(longest, numel // longest) for longest, numel in sizes), default=1)


def plain_integers(
    spec: TensorSpec, distribution: str, generator: torch.Generator, workload: Workload
) -> tuple[torch.Tensor, Sequence[Pattern], int, tuple[int, ...]]:
    """(values without a pattern, possible patterns, end of the patterns' range, further values that patterns use)."""
    if spec.below:
        return _indices(spec, distribution, generator), INDICES, spec.below, spec.beside
    low, high = integer_range(spec.dtype, distribution, terms(workload))
    values = torch.randint(low, high, spec.shape, generator=generator)
    if spec.dtype is DType.BOOL:
        return values.bool(), MASKS, 2, ()
    if distribution == PATCHWORK and spec.shape and not any(one.dtype.is_float for one in workload.inputs):
        low, high = integer_range(spec.dtype, WIDE_RANGE, terms(workload))
        wide = torch.rand((*spec.shape[:-1], 1), generator=generator) < 0.5
        values = torch.where(wide, torch.randint(low, high, spec.shape, generator=generator), values)
    if distribution == FULL_RANGE and spec.shape and spec.numel:
        values = _with_rows_of_a_size(values, spec, generator).clamp(low, high - 1)
    return values, LENGTHS, min(high, _LENGTHS_BELOW), _sizes(spec, workload)


def some_rows(spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    """A random quarter of the rows, as a mask."""
    return torch.rand((*spec.shape[:-1], 1), generator=generator) < 0.25


def _sizes(spec: TensorSpec, workload: Workload) -> tuple[int, ...]:
    """Values for a length: 0, 1, and n − 1 and n for each dimension n of the workload."""
    most = torch.iinfo(TORCH[spec.dtype]).max
    sizes = {size for one in workload.tensors for size in one.shape}
    return tuple(sorted({n for size in sizes for n in (0, 1, size - 1, size) if n <= most} | {0, 1}))


def extreme_integers(spec: TensorSpec, distribution: str, generator: torch.Generator) -> torch.Tensor:
    """Integers of every magnitude, or at the limits of their type and around zero."""
    info = torch.iinfo(TORCH[spec.dtype])
    if distribution in (INTEGER_LIMITS, INTEGER_LIMITS_BUT_LEAST):
        least = info.min + (distribution == INTEGER_LIMITS_BUT_LEAST and info.min < 0)
        ends = torch.tensor([least, info.min + 1, info.max - 1, info.max, 0, 1, max(info.min, -1)])
        return ends[torch.randint(len(ends), spec.shape, generator=generator)].to(TORCH[spec.dtype])
    if distribution == ROW_INTEGERS:
        return _of_a_rows_size(spec, info, generator)
    bits = torch.rand(spec.shape, generator=generator) * (info.bits - 1 - (info.min < 0))
    sizes = bits.double().exp2().to(torch.int64)
    negative = torch.rand(spec.shape, generator=generator) < (0.5 if info.min < 0 else 0.0)
    return torch.where(negative, -sizes, sizes).to(TORCH[spec.dtype])


def _with_rows_of_a_size(values: torch.Tensor, spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    """``values`` with some rows replaced: integers below one power of two, or near the type's largest or smallest
    number."""
    info = torch.iinfo(TORCH[spec.dtype])
    rows = values.view(-1, spec.shape[-1])
    kind = assign_kinds(4, rows.shape[0], rows.shape[1], generator)
    sized = _of_a_rows_size(spec, info, generator).view(rows.shape).long()
    near = (torch.rand(rows.shape, generator=generator).double() * (info.max // 8)).long()
    kinds = (sized, info.max - near, info.min + near if info.min < 0 else near)
    for number, other in enumerate(kinds, 1):
        rows = torch.where(kind == number, other, rows)
    return rows.view(spec.shape)


def _of_a_rows_size(spec: TensorSpec, info: torch.iinfo, generator: torch.Generator) -> torch.Tensor:
    """Rows of numbers below a power of two in magnitude, which is drawn for each row: of any magnitude and sign, or
    just below it and of one sign. One row holds only the type's largest number or its negative."""
    where, signed = (*spec.shape[:-1], 1) if spec.shape else (), info.min < 0
    largest = info.bits - signed
    bits = torch.randint(1, largest + 1, where, generator=generator)
    bits = torch.where(torch.rand(where, generator=generator) < _AT_THE_END, largest, bits)
    most = bits.double().exp2()
    part = torch.rand(spec.shape, generator=generator).double()
    narrow = torch.rand(where, generator=generator) < 0.5
    sizes = (torch.where(narrow, 1 - part / 8, part) * most * (1 - 2**-24)).to(torch.int64)
    negative = torch.rand(where, generator=generator) < 0.5
    negative = torch.where(narrow, negative, torch.rand(spec.shape, generator=generator) < 0.5)
    sizes = torch.where(negative & signed, -sizes, sizes)
    rows = sizes.view(-1, sizes.shape[-1] if spec.shape else 1)
    ends = (info.max, -info.max if signed else info.max)
    rows[int(torch.randint(len(rows), (), generator=generator))] = ends[int(torch.randint(2, (), generator=generator))]
    return sizes.to(TORCH[spec.dtype])


def with_multiples(tensors: list[torch.Tensor], workload: Workload, generator: torch.Generator) -> list[torch.Tensor]:
    """Replaces one of two integer inputs of equal shape by small multiples of the other and their neighbours, where the
    type can hold them."""
    whole = [at for at, spec in enumerate(workload.inputs) if spec.dtype in INTEGER_RANGE and not spec.below
             and spec.dtype is not DType.BOOL]  # fmt: skip
    pairs = [(i, j) for i in whole for j in whole if i != j and tensors[i].shape == tensors[j].shape]
    if not pairs:
        return tensors
    at, of = pairs[int(torch.randint(len(pairs), (), generator=generator))]
    info, shape = torch.iinfo(tensors[at].dtype), tuple(tensors[at].shape)
    factor = torch.randint(-_MOST_QUOTIENT, _MOST_QUOTIENT + 1, shape, generator=generator)
    beside = torch.randint(-1, 2, shape, generator=generator)
    exact = tensors[of].double() * factor
    fits = (exact > info.min / 2) & (exact < info.max / 2)
    near = (tensors[of].long() * factor + beside).clamp(max(info.min, -(1 << 62)), min(info.max, 1 << 62))
    changed = torch.where(fits, near, tensors[at].long()).to(tensors[at].dtype)
    return [*tensors[:at], placed(changed, workload.inputs[at]), *tensors[at + 1 :]]


def _indices(spec: TensorSpec, distribution: str, generator: torch.Generator) -> torch.Tensor:
    """Indices within range, some replaced by values allowed outside of it."""
    high = {"zeros": 1, "bits": min(2, spec.below)}.get(distribution, spec.below)
    values = torch.randint(high, spec.shape, generator=generator)
    if spec.beside and distribution not in ("zeros", "bits"):
        chosen = torch.randint(len(spec.beside), spec.shape, generator=generator)
        rare = torch.rand(spec.shape, generator=generator) < between(0, 0.3, generator)
        values = torch.where(rare, torch.tensor(spec.beside)[chosen], values)
    return values


def integer_range(dtype: DType, distribution: str, most_terms: int) -> tuple[int, int]:
    """Range [low, high) of an integer input."""
    if distribution == "zeros":
        return 0, 1
    if distribution == "bits" or dtype is DType.BOOL:
        return 0, 2
    if distribution == WIDE_RANGE and dtype is DType.I32:
        high = (1 << 31) // max(most_terms, 1)
        return -high, high
    if distribution in (FULL_RANGE, WIDE_RANGE):  # without the extremes, whose negative or absolute value may not exist
        whole = torch.iinfo(TORCH[dtype])
        return (whole.min + 2, whole.max - 1) if dtype in SIGNED else (0, whole.max + 1)
    high = INTEGER_RANGE[dtype]
    return -high if dtype in SIGNED else 0, high

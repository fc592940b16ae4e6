"""Unusual numbers in the smaller inputs, such as a scale of each row or a weight of each column, which mixed draws
would otherwise leave normal. Only a few numbers are changed, so that the rest tests other kinds of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.float_tensors import (
    Values,
    exponent_reach,
    floats,
    partners,
    random_below,
    takes_non_finite,
)
from cutegen_lab.judge.draws.values import rand

_SHARE = 8  # of an input with one number for each row, one number in this many is scaled up or down
_LARGER, _LARGEST = 2.0, 6.0  # smallest and largest factor of a column's number, as powers of two
_COLUMNS_SHARE = 0.06
_LEAST = 16  # minimum number of elements of an input in which numbers are made unusual
_ZEROS = (0.0, -0.0)
_ODD = (math.nan, math.inf, -math.inf)
_ROWS_EACH = 16  # minimum number of rows for each non-finite number


def vary_rows(values: Values, workload: Workload, largest: TensorSpec, g: torch.Generator) -> None:
    """Changes inputs with one number for each row of ``largest``, in place: an eighth of the numbers become far larger
    or smaller, two become zeros (one of each sign) and, if there are many, three become NaN, ∞ and −∞."""
    for at, spec in _smaller(workload, largest):
        if not _of_rows(spec, largest):
            continue
        flat = values[at].view(-1)
        order = torch.randperm(len(flat), generator=g)
        some = order[: len(flat) // _SHARE]
        reach = exponent_reach(spec.dtype, 13.0)
        flat[some] *= ((2 * rand((len(some),), g) - 1) * reach).exp2()
        flat[order[-2:]] = torch.tensor(_ZEROS)
        if _takes_odd(workload, spec):
            flat[order[-5:-2]] = torch.tensor(_ODD)


def vary_columns(values: Values, workload: Workload, largest: TensorSpec, g: torch.Generator) -> None:
    """Changes the other smaller inputs in place, as training does: a few numbers 4 to 64 times as large, and one zero
    of each sign."""
    for at, spec in _smaller(workload, largest):
        if _of_rows(spec, largest):
            continue
        flat = values[at].view(-1)
        some = rand((len(flat),), g) < _COLUMNS_SHARE
        order = torch.randperm(len(flat), generator=g)
        some[order[0]] = True
        larger = (_LARGER + (_LARGEST - _LARGER) * rand((len(flat),), g)).exp2()
        flat.copy_(torch.where(some, flat * larger, flat))
        flat[order[-2:]] = torch.tensor(_ZEROS)


def columns_of_smaller(workload: Workload) -> set[int]:
    """Indices of the inputs that :func:`vary_columns` changes and that can hold non-finite numbers."""
    given = [spec for _, spec in floats(workload)]
    if not given:
        return set()
    largest = max(given, key=lambda spec: spec.numel)
    smaller = _smaller(workload, largest)
    return {at for at, spec in smaller if not _of_rows(spec, largest) and _takes_odd(workload, spec)}


def add_odd_columns(values: Values, workload: Workload, g: torch.Generator, local: frozenset[int]) -> None:
    """Writes one NaN and one of each infinity into the smaller inputs that are ``local`` (:func:`local_inputs`)."""
    for at in sorted(local & columns_of_smaller(workload)):
        flat = values[at].view(-1)
        flat[torch.randperm(len(flat), generator=g)[: len(_ODD)]] = torch.tensor(_ODD, dtype=flat.dtype)


def _takes_odd(workload: Workload, spec: TensorSpec) -> bool:
    return takes_non_finite(workload) and spec.numel >= _ROWS_EACH * len(_ODD) and not spec.dtype.is_float8


def meet_rows(values: Values, workload: Workload, at: int, g: torch.Generator) -> None:
    """Makes some numbers in a few rows of input ``at`` equal to that row's number in a smaller input."""
    largest = workload.inputs[at]
    for other, spec in _smaller(workload, largest):
        if _of_rows(spec, largest):
            rows = values[at].view(-1, largest.shape[-1])
            some = torch.randperm(len(rows), generator=g)[: max(len(rows) // (2 * _SHARE), 1)]
            column = random_below(rows.shape[1], g)
            rows[some, column] = values[other].view(-1)[some].to(rows.dtype)


def _smaller(workload: Workload, largest: TensorSpec) -> Iterator[tuple[int, TensorSpec]]:
    """Float inputs far smaller than ``largest``, without those that a product sums over."""
    summed = {at for pair in partners(workload) for at, _ in pair}
    for at, spec in floats(workload):
        if spec.shape and _LEAST <= spec.numel <= largest.numel // _LEAST and at not in summed:
            yield at, spec


def _of_rows(spec: TensorSpec, largest: TensorSpec) -> bool:
    """Whether there is a number for each row, as [rows] or [rows, 1]."""
    rows = largest.shape[:-1]
    return spec.shape in (rows, (*rows, 1)) and spec.shape != largest.shape[-1:]

"""Combinations of numbers that mixed draws put into several inputs together: constants of the reference, equal rows,
zeros where another input is infinite, and every pair of special numbers. Each is in only a few rows, so that the rest
tests other kinds of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.constants import Constants, draw_constants
from cutegen_lab.judge.draws.float_tensors import Values, floats, partners, random_below
from cutegen_lab.judge.draws.values import FEW_ROWS, moderate_normal, rand

_ROWS_SHARE, _MOST_ROWS = 8, 32  # one row in this many is changed; maximum number of changed rows
_SPECIAL = (0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf)
_ZEROS = 0.25  # share of zeros in the slice that is multiplied by an infinity


def add_constants(values: Values, workload: Workload, named: Constants | None, g: torch.Generator) -> None:
    """Puts constants and their neighbours into a few rows of each float input; with few rows, into a part of one."""
    for at, spec in floats(workload):
        rows, columns = _cells(spec, g)
        part = replace(spec, shape=(len(rows), columns.stop - columns.start), strides=())
        drawn = draw_constants(part, named, g, most=0) if named else None
        if drawn is not None:
            _rows_of(values[at], spec)[rows, columns] = drawn.to(values[at].dtype)


def add_equal_rows(values: Values, workload: Workload, g: torch.Generator) -> None:
    """Makes a few rows of two inputs equal, if there are two of one type and row length: the same rows if their shapes
    are equal, otherwise any."""
    pairs = [(i, j) for (i, a), (j, b) in combinations(floats(workload), 2)
             if a.shape and b.shape and a.dtype is b.dtype and a.shape[-1] == b.shape[-1]]  # fmt: skip
    if not pairs:
        return
    i, j = pairs[random_below(len(pairs), g)]
    few, many = sorted((i, j), key=lambda at: workload.inputs[at].numel)
    rows, columns = _cells(workload.inputs[few], g)
    target = _rows_of(values[many], workload.inputs[many])
    alike = workload.inputs[few].shape == workload.inputs[many].shape
    others = rows if alike else torch.randperm(len(target), generator=g)[: len(rows)]
    same = moderate_normal((len(rows), columns.stop - columns.start), g)
    _rows_of(values[few], workload.inputs[few])[rows, columns] = same
    target[others, columns] = same


def add_zeros_at_infinities(values: Values, workload: Workload, g: torch.Generator) -> None:
    """Puts one infinity into each of two inputs that are multiplied. A quarter of the numbers in the other input by
    which it is multiplied are zero."""
    for (i, m), (j, n) in _multiplied(workload):
        for (one, along), (other, across) in (((i, m), (j, n)), ((j, n), (i, m))):
            at = tuple(random_below(size, g) for size in workload.inputs[one].shape)
            line = values[one][(*at[:along], slice(None), *at[along + 1 :])]
            line.nan_to_num_(0.0, 0.0, 0.0)
            values[one][at] = math.inf
            facing = values[other].select(across, at[along])
            facing.masked_fill_(rand(tuple(facing.shape), g) < _ZEROS, 0.0)
            if values[one].shape == values[other].shape:
                values[other][at] = 0.0  # in an elementwise product, this zero is multiplied by the infinity


def add_special_pairs(values: Values, workload: Workload, g: torch.Generator, local: frozenset[int]) -> None:
    """Writes pairs of zeros, ones, NaN and infinities into one row of two inputs of equal shape that are both ``local``
    (:func:`local_inputs`), each pair at one index: all pairs if there is room; and zeros into another row of both."""
    pairs = [pair for pair in alike(workload) if local.issuperset(pair)]
    if not pairs:
        return
    i, j = pairs[random_below(len(pairs), g)]
    rows = [_rows_of(values[at], workload.inputs[at]) for at in (i, j)]
    one = random_below(len(rows[0]), g)
    places = torch.randperm(rows[0].shape[1], generator=g)[: len(_SPECIAL) ** 2]
    which = torch.randperm(len(_SPECIAL) ** 2, generator=g)[: len(places)]
    numbers = torch.tensor(_SPECIAL, dtype=values[i].dtype)
    rows[0][one, places] = numbers[which // len(_SPECIAL)]
    rows[1][one, places] = numbers[which % len(_SPECIAL)]
    if len(rows[0]) >= FEW_ROWS:
        for both in rows:
            both[(one + 1) % len(both)] = 0.0


def alike(workload: Workload) -> list[tuple[int, int]]:
    """Pairs of inputs of equal shape that can hold infinities."""
    able = [(at, spec) for at, spec in floats(workload) if spec.shape and not spec.dtype.is_float8]
    return [(i, j) for (i, a), (j, b) in combinations(able, 2) if a.shape == b.shape]


def _multiplied(workload: Workload) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """At most one pair of (input, dimension) that is summed over together: the first of :func:`partners`; else, if the
    only float inputs are two with several dimensions, the last dimension of the first and, of the second, the first
    dimension of equal size."""
    found = partners(workload)[:1]
    given = [*floats(workload)]
    if not found and len(given) == 2 and all(len(spec.shape) > 1 for _, spec in given):
        (i, a), (j, b) = given
        places = [n for n, size in enumerate(b.shape) if size == a.shape[-1]]
        found = [((i, len(a.shape) - 1), (j, places[0]))] if places else []
    yield from found


def _cells(spec: TensorSpec, g: torch.Generator) -> tuple[torch.Tensor, slice]:
    """A few rows, and all columns; with few rows, one row and an eighth of the columns."""
    length = spec.shape[-1] if spec.shape else 1
    count = spec.numel // length
    some = torch.randperm(count, generator=g)[: min(max(count // _ROWS_SHARE, 1), _MOST_ROWS)]
    if count >= FEW_ROWS:
        return some, slice(0, length)
    width = -(-length // 8)
    first = random_below(length - width + 1, g)
    return some, slice(first, first + width)


def _rows_of(values: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    return values.view(-1, spec.shape[-1] if spec.shape else 1)

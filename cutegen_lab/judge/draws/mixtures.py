"""Draws with rows of many kinds, for workloads that can afford few draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.broadcast import add_odd_columns, meet_rows, vary_columns, vary_rows
from cutegen_lab.judge.draws.constants import Constants
from cutegen_lab.judge.draws.encounters import (
    add_constants,
    add_equal_rows,
    add_special_pairs,
    add_zeros_at_infinities,
)
from cutegen_lab.judge.draws.float_tensors import (
    SIZES,
    TILE_COLUMNS,
    Values,
    exponent_reach,
    fitted_decades,
    floats,
    one_of_the_largest,
    random_below,
    takes_non_finite,
)
from cutegen_lab.judge.draws.type_limits import near_f16_limit
from cutegen_lab.judge.draws.values import FEW_ROWS, assign_kinds, between, moderate_normal, rand, randn

_ODD = (math.nan, math.inf, -math.inf)
_LARGEST = 40.0  # largest power of two whose squares can be added in fp32


def patchwork(workload: Workload, g: torch.Generator, turn: int | None = None) -> Values:
    """Rows of many kinds in one of the largest inputs: normal, large, tiny, zeros, mixed magnitudes, far from zero,
    sorted, with far larger numbers at the end, with one far larger number. With few rows, parts of a row differ.

    An eighth of the rows and columns also holds some non-finite numbers, the first and the last column among them; with
    few rows only in half of the draws, since they may hide everything else. Of two inputs that are multiplied, each has
    an infinity where the other has zeros. A smaller input with one number for each row has unusual numbers too.
    """
    values = {at: moderate_normal(spec.shape, g) for at, spec in floats(workload)}
    at, spec = one_of_the_largest(workload, g, turn)
    if not spec.shape:
        return values
    rows = values[at].reshape(-1, spec.shape[-1])
    count, length = rows.shape
    reach, column = exponent_reach(spec.dtype, 13.0), torch.arange(length)
    mixed = (randn((count, length), g) * between(1, 3, g)).exp2()
    means = (30 + 170 * rand((count, 1), g)) * randn((count, 1), g).sign()
    heavy = column == torch.randint(length, (count, 1), generator=g)

    def tiny(given: torch.Tensor, some: torch.Tensor) -> torch.Tensor:
        """``given``, with each row scaled to another size; the sizes are spread evenly over the decades of
        ``SIZES``."""
        part = (torch.arange(len(some))[:, None] + rand((len(some), 1), g)) / len(some)
        return given * 10 ** fitted_decades(spec.dtype, math.log10(SIZES[0]) * part)

    late = column >= length - max(length // 8, 1)
    others: tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], ...] = (
        lambda given, some: given * 2**reach, tiny, lambda given, some: given * 0,
        lambda given, some: given * mixed[some], lambda given, some: means[some] + given / 4,
        lambda given, some: given.sort(-1)[0], lambda given, some: torch.where(late, given * 2**reach, given),
        lambda given, some: torch.where(heavy[some], given * 2**reach, given),
    )  # fmt: skip
    rows = _with_row_kinds(rows, others, g)
    if takes_non_finite(workload) and (count >= FEW_ROWS or between(0, 1, g) < 0.5):
        some = torch.randperm(count, generator=g).repeat(-(-3 // count))[: max(count // 8, min(count // 2, 9), 3)]
        rows[some, _odd_columns(len(some), length, g)] = torch.tensor(_ODD)[torch.arange(len(some)) % len(_ODD)]
    values[at] = rows.reshape(spec.shape)
    if takes_non_finite(workload):
        add_zeros_at_infinities(values, workload, g)
    vary_rows(values, workload, spec, g)
    return values


def _odd_columns(count: int, length: int, g: torch.Generator) -> torch.Tensor:
    """Columns of ``count`` non-finite numbers. With nine or more, each of ``_ODD`` is in the last column, in one of a
    random eighth of the columns, and in the first."""
    places = torch.randperm(length, generator=g)[: max(length // 8, 1)]
    number = torch.arange(count)
    where = (number + number // len(_ODD)) % 3
    middle = places[torch.randint(len(places), (count,), generator=g)]
    return torch.where(where == 0, length - 1, torch.where(where == 1, middle, 0))


def mosaic(
    workload: Workload, g: torch.Generator, named: Constants | None = None, turn: int | None = None,
    local: frozenset[int] = frozenset(),
) -> Values:  # fmt: skip
    """Row kinds that a patchwork lacks: constant, descending, large with one sign, large with both signs, sparse,
    quantised, and with a moderate mean; and a few rows of each input with the constants ``named``, and equal to rows of
    another input.

    One row holds both infinities, one has two NaN, an eighth of the rows has −∞ in a tile of columns, and an eighth of
    the columns has −∞ in the first rows. In fp16, a few rows have numbers near the largest in some columns. Smaller
    inputs have a few larger numbers, or some numbers of the largest input. ``turn``: as for :func:`patchwork`.
    ``local`` inputs (:func:`local_inputs`) have a few non-finite numbers too.
    """
    values = {at: moderate_normal(spec.shape, g) for at, spec in floats(workload)}
    at, spec = one_of_the_largest(workload, g, turn)
    if not spec.shape:
        return values
    rows = values[at].reshape(-1, spec.shape[-1])
    count, length = rows.shape
    size = (exponent_reach(spec.dtype, _LARGEST) * rand((count, 1), g).sqrt()).exp2()  # mostly near the largest
    mean = (3 + 27 * rand((count, 1), g)) * randn((count, 1), g).sign()
    kept = rand((count, length), g) < 0.03
    steps = (rows * 4).round() / 4
    others: tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], ...] = (
        lambda given, some: steps[some, :1].expand_as(given), lambda given, some: given.sort(-1, descending=True)[0],
        lambda given, some: (given.abs() + 1) * size[some], lambda given, some: -(given.abs() + 1) * size[some],
        lambda given, some: given * size[some], lambda given, some: torch.where(kept[some], given, 0.0),
        lambda given, some: steps[some], lambda given, some: mean[some] + given / 4,
    )  # fmt: skip
    values[at] = _with_row_kinds(rows, others, g).view(spec.shape)
    vary_columns(values, workload, spec, g)
    meet_rows(values, workload, at, g)
    add_equal_rows(values, workload, g)
    if takes_non_finite(workload):
        add_constants(values, workload, named, g)
    rows = values[at].view(count, length)
    if takes_non_finite(workload) and count >= FEW_ROWS and length > 1:
        some = torch.randperm(count, generator=g)[:2]
        places = torch.randperm(length, generator=g)[:2]
        rows[some[0], places] = torch.tensor([math.inf, -math.inf])
        rows[some[1], places] = math.nan
        _enlarge_a_tile(rows, spec, g)
        _hide_a_tile(rows, g)
    if takes_non_finite(workload):
        add_odd_columns(values, workload, g, local)
        add_special_pairs(values, workload, g, local)
    return values


def _enlarge_a_tile(rows: torch.Tensor, spec: TensorSpec, g: torch.Generator) -> None:
    """Writes fp16 numbers whose sums overflow (:func:`near_f16_limit`) into an eighth of the columns of an eighth of
    the ``rows`` [count, length], at least two of each; nothing into other types."""
    some, places = (torch.randperm(size, generator=g)[: max(size // 8, 2), None] for size in rows.shape)
    tile = replace(spec, shape=(len(some), len(places)), strides=())
    rows[some, places.T] = near_f16_limit(rows[some, places.T], tile, g)


def _hide_a_tile(rows: torch.Tensor, g: torch.Generator) -> None:
    """Writes −∞, as an additive mask does, into an eighth of the columns (at most 64) of a few ``rows`` [count,
    length]: into the first columns of some and elsewhere in others; and into the first rows of a few columns."""
    count, length = rows.shape
    if side := min(TILE_COLUMNS, length // 8):
        some = torch.randperm(count, generator=g)[: max(count // 8, 2)]
        first = side * random_below(length // side, g)
        rows[some[::2], :side] = -math.inf
        rows[some[1::2], first : first + side] = -math.inf
    if side := min(TILE_COLUMNS, count // 8):
        rows[:side, torch.randperm(length, generator=g)[: max(length // 8, 1)]] = -math.inf


def _with_row_kinds(
    given: torch.Tensor, others: Sequence[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]], g: torch.Generator
) -> torch.Tensor:
    """Rows of ``given``, each changed by one of ``others`` (called with the rows and their indices) or unchanged, all
    equally often; with few rows, parts of rows."""
    count, length = given.shape
    kind, rows = assign_kinds(len(others) + 1, count, length, g), given.clone()
    for number, changed in enumerate(others, 1):
        some = (kind == number).any(-1).nonzero()[:, 0]
        rows[some] = torch.where(kind[some] == number, changed(given[some], some), rows[some])
    return rows

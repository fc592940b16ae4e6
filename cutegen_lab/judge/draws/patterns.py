"""Draws masks, indices and lengths with structure, for kernels that rely on random ones.

Examples: a tile or row that a mask hides completely, a count beyond 8 bits; indices that all hit one address, or are
sorted; a length of zero, and one as long as the row. Each pattern fills a whole tensor or some of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from cutegen_lab.judge.draws.names import PATTERN
from cutegen_lab.judge.draws.values import Shape, assign_kinds, between, rand

# Thresholds for a random number from 0 to 1 in other draws: below the first there is no pattern, up to the second one
# for each row, above it one for the whole tensor.
_NO_PATTERN_SHARE, _BY_ROWS_SHARE = 0.15, 0.35
_MOST_STRIDE = 64

Pattern = Callable[["Grid", torch.Generator], torch.Tensor]


@dataclass(frozen=True)
class Grid:
    """Shape and range of a tensor to fill, seen as rows of its last dimension."""

    rows: int
    """Product of all dimensions but the last."""
    columns: int
    """Size of the last dimension."""
    height: int
    """Size of the next to last dimension."""
    below: int = 2
    """Values are 0 to ``below`` − 1; 2 for a mask."""
    others: tuple[int, ...] = ()
    """Further values that are allowed."""

    @property
    def shape(self) -> Shape:
        """(rows, columns)."""
        return self.rows, self.columns

    @property
    def column(self) -> torch.Tensor:
        """Index of each column, [columns]."""
        return torch.arange(self.columns)

    @property
    def row(self) -> torch.Tensor:
        """Row indices within a matrix of ``height`` rows, [rows, 1]."""
        return torch.arange(self.rows)[:, None] % self.height

    def any(self, g: torch.Generator, a_row: bool = False) -> torch.Tensor:
        """Random values below ``below``, [rows, columns], or [rows, 1] with ``a_row``."""
        return torch.randint(self.below, (self.rows, 1) if a_row else self.shape, generator=g)


def _coin(at: Grid, g: torch.Generator) -> torch.Tensor:
    return rand(at.shape, g) < 0.5


def _place(at: Grid, g: torch.Generator) -> torch.Tensor:
    """One true element in each row: its first element in the first row, its last in the last row, a random one in the
    others or if there is only one row."""
    place = torch.randint(at.columns, (at.rows, 1), generator=g)
    if at.rows > 1:
        place[0], place[-1] = 0, at.columns - 1
    return at.column == place


def _prefix(at: Grid, g: torch.Generator) -> torch.Tensor:
    """Rows that begin with a random number of ones, as a mask made from lengths does."""
    return at.column < torch.randint(at.columns + 1, (at.rows, 1), generator=g)


def _blocks(at: Grid, g: torch.Generator) -> torch.Tensor:
    side = 8 << int(torch.randint(4, (), generator=g))
    coarse = rand((-(-at.rows // side), -(-at.columns // side)), g) < 0.5
    return coarse.repeat_interleave(side, 0)[: at.rows].repeat_interleave(side, 1)[:, : at.columns]


def _band(at: Grid, g: torch.Generator) -> torch.Tensor:
    return (at.column - at.row).abs() <= int(between(0, 1, g) * at.columns / 4)


MASKS: Sequence[Pattern] = (
    lambda at, g: torch.ones(at.shape, dtype=torch.bool),
    lambda at, g: torch.zeros(at.shape, dtype=torch.bool),
    _place,
    lambda at, g: ~_place(at, g),
    _prefix,
    lambda at, g: ~_prefix(at, g),
    lambda at, g: (at.column <= at.row).expand(at.shape),  # causal
    lambda at, g: _coin(at, g) & (rand((at.rows, 1), g) < 0.5),  # some whole rows are false
    _blocks,
    _band,
    lambda at, g: rand(at.shape, g) < between(0, 0.05, g),
    lambda at, g: rand(at.shape, g) > between(0, 0.05, g),
)


def _ordered(at: Grid, g: torch.Generator) -> torch.Tensor:
    return at.any(g).sort(-1)[0]


def _runs(at: Grid, g: torch.Generator) -> torch.Tensor:
    """Each index repeated several times in a row."""
    starts = rand(at.shape, g) < between(0.02, 0.5, g)
    return at.any(g).gather(1, torch.where(starts, at.column, 0).cummax(-1)[0])


def _shuffled(at: Grid, g: torch.Generator) -> torch.Tensor:
    """Indices in random order, without duplicates if there are enough."""
    order = torch.randperm(max(at.below, at.columns), generator=g)[: at.columns]
    return (order + at.any(g, a_row=True)) % at.below


def _strided(at: Grid, g: torch.Generator) -> torch.Tensor:
    stride = 1 + int(torch.randint(_MOST_STRIDE, (), generator=g))
    return (at.column * stride + at.any(g, a_row=True)) % at.below


def _clustered(at: Grid, g: torch.Generator) -> torch.Tensor:
    return torch.where(rand(at.shape, g) < between(0.5, 1, g), int(at.any(g)[0, 0]), at.any(g))


def _near_powers(at: Grid, g: torch.Generator) -> torch.Tensor:
    """Powers of two and their neighbours, where an index with too few bits fails."""
    powers = 1 << torch.randint(max(at.below - 1, 1).bit_length(), at.shape, generator=g)
    return (powers + torch.randint(-1, 2, at.shape, generator=g)).clamp(0, at.below - 1)


INDICES: Sequence[Pattern] = (
    _ordered,
    lambda at, g: _ordered(at, g).flip(-1),
    lambda at, g: at.any(g)[:1, :1].expand(at.shape),  # one index everywhere
    lambda at, g: at.any(g, a_row=True).expand(at.shape),
    _runs,
    _shuffled,
    lambda at, g: (at.column % at.below).expand(at.shape),
    lambda at, g: (at.column.flip(0) % at.below).expand(at.shape),
    lambda at, g: torch.full(at.shape, at.below - 1),
    lambda at, g: torch.where(_coin(at, g), 0, at.below - 1),
    _clustered,
    _strided,
    lambda at, g: _one_of(at, g) if at.others else at.any(g),
    _near_powers,
)


def _one_of(at: Grid, g: torch.Generator) -> torch.Tensor:
    return torch.tensor(at.others)[torch.randint(len(at.others), at.shape, generator=g)]


# For integers without a known meaning; ``others`` are sizes of which they may be lengths.
LENGTHS: Sequence[Pattern] = (
    _one_of,
    _ordered,
    lambda at, g: at.any(g, a_row=True).expand(at.shape),
    lambda at, g: _one_of(at, g)[:1, :1].expand(at.shape),
    lambda at, g: torch.where(_coin(at, g), 0, 1),
)
PATTERN_COUNT = max(map(len, (MASKS, INDICES, LENGTHS)))


def with_pattern(
    shape: Shape, plain: torch.Tensor, kinds: Sequence[Pattern], distribution: str, g: torch.Generator,
    by_rows: bool, below: int = 2, others: tuple[int, ...] = (),
) -> torch.Tensor:  # fmt: skip
    """``plain``, or values of one pattern, or of one pattern for each row (always if ``by_rows``)."""
    share = between(0, 1, g)
    if not plain.numel() or (not distribution.startswith(PATTERN) and not by_rows and share < _NO_PATTERN_SHARE):
        return plain
    height, columns = (1, 1, *shape)[-2:]
    at = Grid(plain.numel() // columns, columns, height, below, others)
    if distribution.startswith(PATTERN):
        number = int(distribution.removeprefix(PATTERN))
    elif not by_rows and share > _BY_ROWS_SHARE:
        number = int(torch.randint(len(kinds), (), generator=g))
    else:
        return _by_rows(at, plain, kinds, g).view(shape)
    return kinds[number % len(kinds)](at, g).to(plain.dtype).reshape(shape)


def _by_rows(at: Grid, plain: torch.Tensor, kinds: Sequence[Pattern], g: torch.Generator) -> torch.Tensor:
    """One pattern for each row; with few rows, for each part of a row."""
    rows = plain.reshape(at.shape)
    kind = assign_kinds(len(kinds) + 1, at.rows, at.columns, g)
    for number, one in enumerate(kinds):
        rows = torch.where(kind == number, one(at, g).to(plain.dtype), rows)
    return rows

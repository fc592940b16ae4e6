"""Sizes of small workloads, and what each tests."""

from __future__ import annotations

from dataclasses import dataclass, replace

ALIGNED_TO = 128  # rows or columns of a tile
LONG_ALIGNED = 2048  # columns of a workload with few rows
_VECTOR = 16  # a size is aligned if this divides it
_TILE = 32  # a row is ragged unless this divides it
_EVEN = 24  # multiples of this divide into two, three and four equal parts
# Maximum number of terms of a matrix product's sum in a small workload: more steps than any ring has stages. Not more,
# because a kernel may add terms one after another, and the emulator takes a second for 500 terms.
LONGEST_SUM = 1160
LEAST_DEEP = 256  # summed dimensions of at least this size take several steps of a ring
_LONG, _LONGER = 2048, "longer than one pass of a block"
_LONG_PRIME_SUM = 1031
_PRIMES = (251, 127, 61, 31, 13, 7, 3)


@dataclass(frozen=True)
class Probe:
    """Sizes of a small workload, and what they test."""

    name: str
    """Name of the workload."""
    rows: int
    """Size of the outer dimension."""
    columns: int | None
    """Size of the last dimension; None to keep it."""
    why: str
    """What the sizes test."""
    others: tuple[int, ...] = (2, 3, 1)
    """Sizes of further axes; the last of these is for all remaining axes."""
    largest_first: bool = False
    """Whether the largest of these axes comes first; if sizes are solved for, it always does."""

    def columns_of(self, row: int) -> int:
        """Size that a row of ``row`` elements shrinks to. A row no longer than ``columns`` is made ragged too."""
        if self.columns is None or row > self.columns:
            return row if self.columns is None else self.columns
        if self.name == PRIME and row % 2 == 0:
            return next((prime for prime in _PRIMES if prime < row), row)
        if self.name in (TAIL, RAGGED) and row % _TILE == 0:
            return next(size for size in range((row - 1) // _EVEN * _EVEN, 0, -_EVEN) if size % _TILE)
        return row

    def why_of(self, columns: int) -> str:
        """``why`` if it holds for rows of ``columns`` elements, otherwise empty."""
        if self.name == PRIME and columns not in (self.columns, *_PRIMES):
            return f"{columns} columns"
        if self.name in (LONG_PRIME, LONG) and columns != self.columns:
            return f"{self.rows} rows of {columns}" if columns < _LONG else _LONGER
        return self.why


PRIME, TAIL, RAGGED, LONG, LONG_PRIME = "prime", "tail", "ragged", "long", "long_prime"
PROBES = (
    Probe("real_row", 3, None, "the real row length, few rows"),
    Probe("one_row", 1, 512, "a single row"),
    Probe(PRIME, 5, 257, "prime columns: no vector divides them"),
    Probe(TAIL, 17, 1000, "vectors fit, the last tile is ragged"),
    Probe(LONG_PRIME, 2, 4099, f"prime and {_LONGER}"),
    Probe("one_column", 7, 1, "a single column"),
)
ALIGNED = Probe("aligned", ALIGNED_TO, ALIGNED_TO, "whole tiles, for kernels that serve nothing else", (2, 1), True)
ALIGNED_PRODUCT = replace(ALIGNED, others=(ALIGNED_TO, 2, 1))
# For matrix products: sizes for kernels with TMA whose ``constraints`` refuse the others.
TILES = Probe("tiles", 144, 272, "several ragged tiles, every row a multiple of 16 bytes", (208, 2), True)
DEEP = Probe("deep", 72, LONGEST_SUM, "more steps along the summed dimension than any ring has stages", (40, 2), True)
# If the reference accepts too few of these, sizes are solved for.
ODD = Probe("odd", 13, 257, "odd sizes wherever the reference takes them", (7, 3))
SOLVED = (
    ODD,
    Probe(RAGGED, 34, 1000, "vectors fit, the last tile is ragged", (18, 2)),
    Probe("single", 1, 512, "one of everything but the longest dimension", (1,)),
    Probe(LONG, 2, 4099, _LONGER, (3, 2)),
)


def with_short_sums(probe: Probe) -> Probe:
    """``probe`` for a reference in which a matrix product sums over the columns: with fewer columns, if they are more
    than :data:`LONGEST_SUM`."""
    if probe.columns is None or probe.columns <= LONGEST_SUM:
        return probe
    return replace(probe, columns=_LONG_PRIME_SUM, why="prime and more steps than any ring has stages")


NAMES = frozenset(probe.name for probe in (*PROBES, ALIGNED, TILES, DEEP, *SOLVED))
TRIVIAL = ("one_row", "one_column", "single")  # many wrong kernels pass these
FEW_ROWS = ("real_row", LONG_PRIME)  # redundant if another workload has rows as long


def is_aligned(size: int) -> bool:
    """Whether vectors divide the size, so that it may consist of whole tiles."""
    return size % _VECTOR == 0


def aligned(size: int, to: int = ALIGNED_TO) -> int:
    """``to``, halved until it divides ``size`` or is :data:`ALIGNED_TO`; at most ``size``."""
    while size % to and to > ALIGNED_TO:
        to //= 2
    return min(size, to)

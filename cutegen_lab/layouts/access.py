"""A warp's access to a tile in shared memory: the bank and wavefront of each lane.

Shared memory has 32 banks of 4 bytes. :mod:`cutegen_lab.emulator.counters.access_cost` counts wavefronts; this module
assigns lanes to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.emulator.counters.access_cost import phases, wavefronts
from cutegen_lab.layouts.layout import AnyLayout, Layout, plain_part

BANKS, BANK_BYTES = 32, 4
WIDTHS = (1, 2, 4, 8, 16)
WARP = 32


@dataclass(frozen=True)
class Lane:
    """The access of one lane: ``elements`` are linear coordinates, ``address`` is in bytes."""

    number: int
    elements: tuple[int, ...]
    address: int


@dataclass(frozen=True)
class Wavefront:
    """One pass through shared memory. ``banks``: by bank, the lanes that it serves, all with the same word."""

    phase: int
    banks: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class Access:
    """One warp's access of ``width`` bytes per lane. ``ideal``: its number of wavefronts without conflicts."""

    width: int
    lanes: tuple[Lane, ...]
    wavefronts: tuple[Wavefront, ...]
    ideal: int

    @property
    def conflicts(self) -> int:
        return len(self.wavefronts) - self.ideal


def contiguous_mode(layout: AnyLayout, count: int) -> int | None:
    """The mode along which each aligned run of ``count`` elements is contiguous in memory; None if there is none."""
    for at, mode in enumerate(plain_part(layout).modes[:2]):
        if mode.size % count == 0 and _side_by_side(layout, at, count):
            return at
    return None


@lru_cache(256)
def indices(layout: AnyLayout) -> tuple[int, ...]:
    """The index of each coordinate, leftmost mode first."""
    return tuple(map(layout, range(layout.size)))


def _side_by_side(layout: AnyLayout, mode: int, count: int) -> bool:
    table = indices(layout)
    firsts = ((table[run[0]], run) for run in runs(layout, mode, count))
    return all(
        first % count == 0 and all(table[element] == first + k for k, element in enumerate(run))
        for first, run in firsts
    )


def runs(layout: AnyLayout, mode: int, count: int) -> list[tuple[int, ...]]:
    """The linear coordinates of each aligned run of ``count`` elements along ``mode``, in column-major order."""
    sizes = [part.size for part in plain_part(layout).modes]
    step = sizes[0] if mode else 1
    firsts = [at for at in range(layout.size) if at // step % sizes[mode] % count == 0]
    return [tuple(first + step * k for k in range(count)) for first in firsts]


def access(layout: AnyLayout, itemsize: int, width: int, places: Sequence[tuple[int, int]]) -> Access:
    """Thread i of a warp takes ``width`` bytes at ``places[i]``: (row, column) in the grid of pieces of ``width``
    bytes; rows are the first mode. Raises InputError for a width or place that does not exist."""
    if width not in WIDTHS:
        raise InputError(f"a load or store cannot be {width} bytes wide", f"Use {', '.join(map(str, WIDTHS))}.")
    count = max(1, width // itemsize)
    mode = contiguous_mode(layout, count)
    if width < itemsize or mode is None:
        message = f"an access of {width} bytes does not fit {layout} with elements of {itemsize} bytes"
        raise InputError(
            message, f"Use a narrower access of at least {itemsize} bytes, or a layout in which these are contiguous."
        )
    pieces = runs(layout, mode, count)
    rows = plain_part(layout).modes[0].size // (1 if mode else count)
    lanes = []
    for number, (row, column) in enumerate(places[:WARP]):
        if row >= rows or column >= len(pieces) // rows:
            message = (
                f"thread {number} is at ({row},{column}) of {rows} by {len(pieces) // rows} pieces of {width} bytes"
            )
            raise InputError(message, Hint(Advice.OTHER_THREADS))
        piece = pieces[row + rows * column]
        lanes.append(Lane(number, piece, layout(piece[0]) * itemsize))
    return access_of_lanes(lanes, width)


def access_of_lanes(lanes: Sequence[Lane], width: int, of_rows: bool = False) -> Access:
    """The wavefronts of an access of ``width`` bytes per lane. ``of_rows``: the lanes access rows of ldmatrix or
    stmatrix, whose phases never merge."""
    return Access(width, tuple(lanes), *_served(lanes, width, of_rows))


def places_of(threads: Layout) -> list[tuple[int, int]]:
    """(row, column) of each thread, by number, in a layout of threads ((row, column) → number, as for a tiled copy).

    Raises InputError unless each number from 0 on has one place.
    """
    rows = threads.modes[0].size
    found = {threads(at): (at % rows, at // rows) for at in range(threads.size)}
    if sorted(found) != list(range(threads.size)):
        raise InputError(f"{threads} does not number threads from 0 on", "Write it as 32, (1,32) or (8,4):(4,1).")
    return [found[number] for number in range(threads.size)]


def _served(lanes: Sequence[Lane], width: int, of_rows: bool) -> tuple[tuple[Wavefront, ...], int]:
    """(wavefronts, their number without conflicts)."""
    size = min(WARP, BANKS * BANK_BYTES // width) if width >= BANK_BYTES else WARP
    found: list[Wavefront] = []
    ideal = 0
    step = 2 * size if size < WARP else size  # two phases may merge
    for first in range(0, WARP, step):
        halves = [[each for each in lanes if first <= each.number - start < first + size] for start in (0, size)]
        both = halves[0] + (halves[1] if step > size else [])
        joined = bool(both) and _count(both, width, of_rows)[1] == 1
        for part in [both] if joined else halves[: step // size]:
            if part:
                found += _turns(part, width, ideal)
                ideal += 1
    if len(found) != (counted := _count(lanes, width, of_rows)[0]):
        raise AssertionError(f"{len(found)} wavefronts are drawn, {counted} counted")
    return tuple(found), ideal


def _count(lanes: Sequence[Lane], width: int, of_rows: bool) -> tuple[int, int]:
    numbers = np.array([lane.number for lane in lanes])
    index = np.array([lane.address // width for lane in lanes])
    if of_rows:
        return phases(index.reshape(-1, min(8, len(lanes))), 8)
    return wavefronts(numbers, index, width, len(lanes) == WARP)


def _turns(lanes: Sequence[Lane], width: int, phase: int) -> list[Wavefront]:
    """Wavefronts of a phase: each piece of ``width`` bytes is served when its banks are free, lower lanes first."""
    pieces: dict[int, list[int]] = {}
    for lane in lanes:
        pieces.setdefault(lane.address // max(width, BANK_BYTES), []).append(lane.number)
    banks = max(1, width // BANK_BYTES)
    turns: list[dict[int, tuple[int, ...]]] = []
    for piece, numbers in pieces.items():
        first = piece * banks % BANKS
        turn = next((turn for turn in turns if first not in turn), None)
        if turn is None:
            turns.append(turn := {})
        turn.update({first + k: tuple(numbers) for k in range(banks)})
    return [Wavefront(phase, turn) for turn in turns]

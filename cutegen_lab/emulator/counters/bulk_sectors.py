"""Cost of a bulk copy: 32-byte sectors of global memory (measured on an H200)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cutegen_lab.core.counters import SECTOR_BYTES
from cutegen_lab.emulator.ptx.types import Array

_LINE = 128  # bytes of shared memory


def row_sectors(at: Array, width: int, place: Array | None = None) -> int:
    """Sectors of rows of ``width`` bytes at ``at``, which one bulk copy moves.

    A store (from ``place`` in shared memory) is split at 128-byte lines of shared memory: an H200 counts a sector that
    spans two of them twice.
    """
    found = (at % SECTOR_BYTES + width + SECTOR_BYTES - 1) // SECTOR_BYTES
    if place is not None:
        first = _LINE - place % _LINE
        cuts = np.maximum(0, (width - first + _LINE - 1) // _LINE)
        found = found + cuts * ((at + first) % SECTOR_BYTES != 0)
    return int(found.sum())


@lru_cache(4096)
def box_sectors(first: int, place: int | None, dims: tuple[tuple[int, int, int], ...], width: int) -> int:
    """As :func:`row_sectors`, for the rows of a box, from ``first`` on. ``dims`` are (rows, bytes from row to row in
    global and in shared memory). ``place`` is None for loads."""
    at, where = np.array([first]), np.array([place or 0])
    for count, step, pitch in dims:
        rows = np.arange(count)[:, None]
        at, where = (rows * step + at).ravel(), (rows * pitch + where).ravel()
    return row_sectors(at, width, None if place is None else where)

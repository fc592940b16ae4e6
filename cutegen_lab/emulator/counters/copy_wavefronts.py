"""Shared-memory wavefronts of cp.async, which also depend on the global addresses (measured on an H200).

Copies of 16, 8 or 4 bytes per lane are served in phases of 8, 16 or 32 lanes, as loads and stores are
(:mod:`access_cost`). A lane reads a bank of L1's data and writes a bank of shared memory. The number of its wavefront
is the number of lower lanes that read the same bank, plus the number of other pieces that lower lanes write to the bank
that this lane writes; lanes with equal numbers that share a bank of shared memory are serialised. Copies that bypass L1
(.cg) then move data from one 128-byte line of global memory to one of shared memory at a time, rotated by one distance.
If that distance is odd, so that 16 bytes change halves of their sector, the two halves are moved separately.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cutegen_lab.emulator.ptx.types import Array

_LINE = 128
_WARP = 32


def wavefronts(gid: Array, index: Array, address: Array, moved: Array, width: int, past_l1: bool) -> tuple[int, int]:
    """(wavefronts, those without conflicts) of one copy by the lanes ``gid``, summed over warps.

    ``index`` counts pieces of ``width`` bytes of shared memory from a multiple of 128, ``address`` is in bytes of
    global memory. Lanes that are not ``moved`` write zeros.
    """
    lanes = _LINE // width
    phase, lane = gid // lanes, gid % lanes
    fresh = np.r_[True, phase[1:] != phase[:-1]]
    row, count = np.cumsum(fresh) - 1, int(fresh.sum())
    table = np.full((count, 4, lanes), 0, np.int64)  # [present, moved, piece of shared memory, piece of global memory]
    source = (address // np.uint64(width)).astype(np.int64)
    for i, values in enumerate((np.ones(len(gid), np.int64), moved, index, source)):
        table[row, i, lane] = values
    first = np.argmax(table[:, 0], axis=1)[:, None]
    for i in (2, 3):  # counted from the line of the first lane of each phase
        base = np.take_along_axis(table[:, i], first, axis=1) // lanes * lanes
        table[:, i] = np.where(table[:, 0] > 0, table[:, i] - base, 0)
    if (table == table[0]).all():
        return count * _like(table[0].tobytes(), lanes, past_l1), count * (1 + past_l1)
    return _count(table, past_l1), count * (1 + past_l1)


@lru_cache(4096)
def _like(raw: bytes, lanes: int, past_l1: bool) -> int:
    return _count(np.frombuffer(raw, np.int64).reshape(1, 4, lanes), past_l1)


def _count(table: Array, past_l1: bool) -> int:
    here, moved = table[:, 0] > 0, table[:, 1] > 0
    to, source = table[:, 2], table[:, 3]
    lanes = to.shape[1]
    before = np.tri(lanes, k=-1, dtype=np.bool_) & here[:, None, :]  # [phase, lane, lane before it]
    reads = _alike(source % lanes) & before & (moved[:, :, None] & moved[:, None, :])
    same = to[:, :, None] == to[:, None, :]
    first = here & ~(same & before).any(axis=2)
    others = _alike(to % lanes) & ~same & before & first[:, None, :]
    number = others.sum(axis=2) + reads.sum(axis=2)
    rows, numbers = np.arange(len(to))[:, None], 2 * lanes
    key = ((rows * numbers + number) * lanes + to % lanes)[first]
    each = np.bincount(key, minlength=len(to) * numbers * lanes).reshape(-1, lanes)
    return int(each.max(axis=1).sum()) + (_moves(to, source, moved) if past_l1 else 0)


def _alike(bank: Array) -> Array:
    return np.asarray(bank[:, :, None] == bank[:, None, :])


def _moves(to: Array, source: Array, moved: Array) -> int:
    """Number of distinct (source line, target line, rotation, half of a sector if it changes), summed over phases.
    Places are in units of 16 bytes."""
    rotation = (to - source) % 8
    half = np.where(rotation % 2 > 0, source % 2, 0)
    lines = (source // 8 - (source // 8).min() << 24) + (to // 8 - (to // 8).min())
    key = np.where(moved, (lines * 8 + rotation) * 2 + half, -1)
    ordered = np.sort(key, axis=1)
    return int((ordered[:, 1:] != ordered[:, :-1]).sum() + (ordered[:, 0] >= 0).sum())

"""What a warp's access costs: 32-byte sectors of global memory, wavefronts of shared memory.

Shared memory has 32 banks of 4 bytes. A warp's access of up to 4, of 8 or of 16 bytes a lane is served in 1, 2 or 4
*phases* of 32, 16 or 8 lanes; lanes of a phase that want the same word share it. A phase takes as many wavefronts as
the busiest bank has different words to give: 1 without conflicts.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cutegen_lab.emulator.types import Array

SECTOR = 32  # bytes; the unit in which L2 and DRAM move global data
_BANKS, _BANK_BYTES = 32, 4


def sectors(gid: Array, address: Array, width: int, whole: bool) -> int:
    """Distinct 32-byte sectors touched, summed over warps. ``address`` is uint64 by lane, ``width`` ≤ 32 bytes.

    ``whole``: do the lanes form complete warps of 32? Accesses are aligned, so that none reaches two sectors.
    """
    if address.ndim == 0 or len(address) == 0:
        return 1 if address.ndim == 0 else 0
    sector = address >> np.uint64(5)
    if whole:
        table = sector.reshape(-1, 32)
        if not (table[:, 1:] >= table[:, :-1]).all():
            table = np.sort(table, axis=1)
        return len(table) + int(np.count_nonzero(table[:, 1:] != table[:, :-1]))
    warp = gid >> 5
    order = np.lexsort((sector, warp))
    w, s = warp[order], sector[order]
    return 1 + int(np.count_nonzero((w[1:] != w[:-1]) | (s[1:] != s[:-1])))


def wavefronts(gid: Array, index: Array, width: int, whole: bool) -> tuple[int, int]:
    """(wavefronts, phases) of one shared-memory access, summed over warps.

    ``index`` counts in pieces of ``width`` bytes (1 to 16) from an address that is a multiple of 128. The phases are
    what the access takes without conflicts.
    """
    if width < _BANK_BYTES:
        index, width = index * width >> 2, _BANK_BYTES
    lanes = _BANKS * _BANK_BYTES // width  # of a phase, which is also how many pieces lie side by side in the banks
    return phases(index.reshape(-1, lanes) if whole else _filled(gid, index, lanes), lanes)


def phases(table: Array, pieces: int) -> tuple[int, int]:
    """(wavefronts, phases) of ``table`` [phase, lane], where ``pieces`` fill all banks.

    Turning the banks round changes nothing, so phases that are alike up to an offset cost the same.
    """
    relative = table - table[:, :1]
    count = len(relative)
    if (relative == relative[0]).all():
        return count * _like(relative[0].tobytes(), pieces), count
    return _count(relative, pieces), count


@lru_cache(4096)
def _like(relative: bytes, pieces: int) -> int:
    return _count(np.frombuffer(relative, np.int64)[None], pieces)


def _count(table: Array, pieces: int) -> int:
    """Wavefronts, summed over phases: of each, the most different pieces that one group of banks must give."""
    rows = np.arange(len(table))[:, None] * pieces
    groups = rows + (table & pieces - 1)
    found = np.bincount(groups.ravel(), minlength=len(table) * pieces)
    if found.max() > 1:
        ordered = np.sort(table, axis=1)
        fresh = np.ones(ordered.shape, np.bool_)
        np.not_equal(ordered[:, 1:], ordered[:, :-1], out=fresh[:, 1:])
        found = np.bincount((rows + (ordered & pieces - 1))[fresh], minlength=len(table) * pieces)
    return int(found.reshape(-1, pieces).max(axis=1).sum())


def _filled(gid: Array, index: Array, lanes: int) -> Array:
    """[phase, lane] of lanes that do not form complete warps: who is missing asks for what another lane asks for."""
    phase = gid // lanes
    first = np.flatnonzero(np.r_[True, phase[1:] != phase[:-1]])
    table = np.repeat(index[first][:, None], lanes, axis=1)
    row = np.cumsum(np.r_[False, phase[1:] != phase[:-1]])
    table[row, gid % lanes] = index
    return table

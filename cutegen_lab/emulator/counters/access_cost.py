"""Cost of a warp's access: 32-byte sectors and 128-byte lines of global memory, wavefronts of shared memory.

Shared memory has 32 banks of 4 bytes. A warp's access of up to 4, of 8 or of 16 bytes per lane is served in 1, 2 or 4
*phases* of 32, 16 or 8 lanes; lanes of a phase that access the same word share it. A phase takes as many wavefronts as
the busiest bank has distinct words: 1 without conflicts. An H200 merges two phases of 8 or 16 bytes per lane if every
lane accesses the same words as lane i ^ 1, or every lane the same as lane i ^ 2.

L1 has the same banks. It looks up four lines of one 512-byte range at a time, and serves a phase's words in these lines
in as many wavefronts as the busiest bank has distinct words.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cutegen_lab.emulator.ptx.types import Array

_BANKS, _BANK_BYTES = 32, 4
_AT_ONCE = 4  # lines that L1 looks up at a time
_LINE_MASK = np.uint64(3)  # low bits of a sector's number: its index in its line


def sectors_and_lines(gid: Array, address: Array, whole: bool) -> tuple[int, int]:
    """Distinct 32-byte sectors touched and distinct 128-byte lines, each summed over warps.

    ``address`` is uint64 by lane; ``whole``: the lanes form complete warps of 32. Accesses are aligned and no wider
    than a sector, so that each is in one sector.
    """
    if address.ndim == 0 or len(address) == 0:
        return (1, 1) if address.ndim == 0 else (0, 0)
    sector = address >> np.uint64(5)
    if whole:
        table = sector.reshape(-1, 32)
        if not (table[:, 1:] >= table[:, :-1]).all():
            table = np.sort(table, axis=1)
        apart = table[:, 1:] ^ table[:, :-1]
        return len(table) + int(np.count_nonzero(apart)), len(table) + int(np.count_nonzero(apart > _LINE_MASK))
    warp = gid >> 5
    order = np.lexsort((sector, warp))
    w, s = warp[order], sector[order]
    other, apart = w[1:] != w[:-1], s[1:] ^ s[:-1]
    touched = np.count_nonzero(other | (apart != 0)), np.count_nonzero(other | (apart > _LINE_MASK))
    return 1 + int(touched[0]), 1 + int(touched[1])


def l1_wavefronts(gid: Array, address: Array, width: int, whole: bool) -> int:
    """Wavefronts of one global load that L1 serves, summed over warps. ``address`` and ``whole``: see
    :func:`sectors_and_lines`; ``width``: bytes per lane."""
    if address.ndim == 0 or len(address) == 0:
        return 1 if address.ndim == 0 else 0
    width = max(1 << (width - 1).bit_length(), _BANK_BYTES)  # cp.async may read fewer bytes than it writes
    pieces = _BANKS * _BANK_BYTES // width  # pieces that fill all banks; also the lanes of a phase
    piece = (address // np.uint64(width)).astype(np.int64)
    table = piece.reshape(-1, pieces) if whole else _filled(gid, piece, pieces)
    relative = table - table[:, :1]
    if (relative == relative[0]).all():
        places = table[:, 0] % (_AT_ONCE * pieces)
        return sum(_l1_like(relative[0].tobytes(), place, pieces) for place in places.tolist())
    return _l1_count(table, pieces)


@lru_cache(4096)
def _l1_like(relative: bytes, place: int, pieces: int) -> int:
    return _l1_count(np.frombuffer(relative, np.int64)[None] + place, pieces)


def _l1_count(table: Array, pieces: int) -> int:
    """Wavefronts of ``table`` [phase, lane], summed over phases and the 512-byte ranges of each."""
    table = np.sort(table, axis=1)
    fresh, other = np.ones(table.shape, np.bool_), np.ones(table.shape, np.bool_)
    np.not_equal(table[:, 1:], table[:, :-1], out=fresh[:, 1:])
    stretch = table // (_AT_ONCE * pieces)  # a line fills all banks
    np.not_equal(stretch[:, 1:], stretch[:, :-1], out=other[:, 1:])
    group = np.cumsum(other.ravel()) - 1
    banks = group[fresh.ravel()] * pieces + (table[fresh] & pieces - 1)
    found = np.bincount(banks, minlength=(int(group[-1]) + 1) * pieces)
    return int(found.reshape(-1, pieces).max(axis=1).sum())


def wavefronts(gid: Array, index: Array, width: int, whole: bool) -> tuple[int, int]:
    """(wavefronts, phases) of one shared-memory access, summed over warps.

    ``index`` is in units of ``width`` bytes (1 to 16) from an address that is a multiple of 128. Phases are the
    wavefronts without conflicts.
    """
    if width < _BANK_BYTES:
        index, width = index * width >> 2, _BANK_BYTES
    pieces = _BANKS * _BANK_BYTES // width  # pieces that fill all banks; also the lanes of a phase
    if not whole:
        return _of_parts(gid, index, pieces)
    if pieces == _BANKS:
        return phases(index.reshape(-1, _BANKS), _BANKS)
    return _of_pairs(index.reshape(-1, 2 * pieces), pieces)


def phases(table: Array, pieces: int) -> tuple[int, int]:
    """(wavefronts, phases) of ``table`` [phase, lane]: the number of the piece that each lane accesses. ``pieces``:
    pieces in 128 bytes, one row of all banks.

    Rotating the banks changes nothing, so phases that are equal up to an offset cost the same.
    """
    relative = table - table[:, :1]
    count = len(relative)
    if (relative == relative[0]).all():
        return count * _like(relative[0].tobytes(), pieces), count
    return _count(relative, pieces), count


def _of_pairs(table: Array, pieces: int) -> tuple[int, int]:
    """As :func:`phases`, for rows of two phases, which may merge."""
    joined = _joined(table)
    if not joined.any():
        return phases(table.reshape(-1, pieces), pieces)
    one = phases(table[joined], pieces)
    if joined.all():
        return one
    two = phases(table[~joined].reshape(-1, pieces), pieces)
    return one[0] + two[0], one[1] + two[1]


def _joined(table: Array) -> Array:
    """Rows in which every lane accesses the same as lane i ^ 1, or every lane the same as lane i ^ 2."""
    if not (table[:, 0] == table[:, 1]).any() and not (table[:, 0] == table[:, 2]).any():
        return np.zeros(len(table), np.bool_)
    fours = table.reshape(len(table), -1, 4)
    neighbours = (fours[:, :, 0] == fours[:, :, 1]) & (fours[:, :, 2] == fours[:, :, 3])
    next_ones = (fours[:, :, 0] == fours[:, :, 2]) & (fours[:, :, 1] == fours[:, :, 3])
    return np.asarray(neighbours.all(axis=1) | next_ones.all(axis=1))


@lru_cache(4096)
def _like(relative: bytes, pieces: int) -> int:
    return _count(np.frombuffer(relative, np.int64)[None], pieces)


def _count(table: Array, pieces: int) -> int:
    """Wavefronts, summed over phases: for each phase, the maximum number of distinct pieces in one group of banks."""
    rows = np.arange(len(table))[:, None] * pieces
    found = np.bincount((rows + (table & pieces - 1)).ravel(), minlength=len(table) * pieces)
    if found.max() > 1:
        ordered = np.sort(table, axis=1)
        fresh = np.ones(ordered.shape, np.bool_)
        np.not_equal(ordered[:, 1:], ordered[:, :-1], out=fresh[:, 1:])
        found = np.bincount((rows + (ordered & pieces - 1))[fresh], minlength=len(table) * pieces)
    return int(found.reshape(-1, pieces).max(axis=1).sum())


def _of_parts(gid: Array, index: Array, pieces: int) -> tuple[int, int]:
    """Wavefronts of incomplete warps: a missing lane accesses the same as another lane of its phase."""
    if pieces < _BANKS and (joined := _one_piece(gid, index, 2 * pieces)):
        return joined, joined
    return phases(_filled(gid, index, pieces), pieces)


def _filled(gid: Array, index: Array, lanes: int) -> Array:
    """``index`` as [phase, lane]; a missing lane accesses the same as the first of its phase."""
    phase = gid // lanes
    fresh = np.r_[True, phase[1:] != phase[:-1]]
    table = np.repeat(index[fresh][:, None], lanes, axis=1)
    table[np.cumsum(fresh) - 1, gid % lanes] = index
    return table


def _one_piece(gid: Array, index: Array, lanes: int) -> int:
    """Number of groups of ``lanes`` lanes, if the lanes of each group access one piece; else 0."""
    group = gid // lanes
    fresh = np.r_[True, group[1:] != group[:-1]]
    return int(fresh.sum()) if bool((index[1:] == index[:-1])[~fresh[1:]].all()) else 0

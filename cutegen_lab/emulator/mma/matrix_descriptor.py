"""Matrix descriptors: the location of a wgmma operand in shared memory (PTX ISA 9.7.15.5.1).

The swizzle is a function of the address, so that a tile whose start is no multiple of the pattern needs the base
offset: an H200 subtracts it from the number of the 128-byte line. A K-step takes 32 bytes of K from each row.
Units are pieces of 16 bytes, eight rows of which make a core matrix.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cutegen_lab.emulator.ptx.types import Array

# Pieces in a row of the swizzle pattern, by the descriptor's mode: none, 128, 64, 32 bytes.
_PIECES = (1, 8, 4, 2)
_REPEAT = 1024


class MatrixDescriptor(NamedTuple):
    """``leading`` and ``stride`` are byte offsets; ``width`` is a row of the swizzle pattern in pieces (1: none)."""

    start: int
    leading: int
    stride: int
    base: int
    width: int


def decode(bits: int) -> MatrixDescriptor:
    return MatrixDescriptor(
        (bits & 0x3FFF) << 4, (bits >> 16 & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4, bits >> 49 & 7,
        _PIECES[bits >> 62 & 3],
    )  # fmt: skip


@lru_cache(8192)
def pieces(steps: tuple[int, ...], rows: int, mn_major: bool) -> Array:
    """Pieces that the descriptors ``steps`` (one for each K-step) address, joined along K.

    K-major: [rows, 2 · steps]. MN-major: [16 · steps, rows / 8], which holds the matrix transposed.
    """
    tiles = [_tile(decode(bits), rows, mn_major) for bits in steps]
    found: Array = np.ascontiguousarray(np.concatenate(tiles, axis=0 if mn_major else 1))
    found.flags.writeable = False
    return found


def _tile(d: MatrixDescriptor, rows: int, mn_major: bool) -> Array:
    if mn_major:
        k, c = np.arange(16)[:, None], np.arange(rows // 8)
        if d.width == 1:
            at = c * d.stride + k // 8 * d.leading + k % 8 * 16
        else:
            at = c % d.width * 16 + c // d.width * d.leading + k % 8 * 16 * d.width + k // 8 * d.stride
    else:
        r, c = np.arange(rows)[:, None], np.arange(2)
        at = r // 8 * d.stride + r % 8 * 16 * d.width + c * (d.leading if d.width == 1 else 16)
    at = at + d.start
    return np.asarray(at ^ ((at >> 7) - d.base & d.width - 1) << 4) >> 4

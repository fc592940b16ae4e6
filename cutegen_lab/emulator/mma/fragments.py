"""How the lanes of a warp hold the matrices of mma.sync (PTX ISA 9.7.14.5 "Matrix Fragments for mma").

Every form above sm_70 follows one rule. With lane = 4q + p and E elements of A or B in a register:

- A: register c·H + h (H = M / 8) holds row 8h + q, columns (4c + p)·E … + E − 1;
- B: register c holds column q, rows (4c + p)·E … + E − 1;
- C and D: element 2h + e is row 8h + q, column 2p + e; 16-bit elements share a register, e = 0 in its low half.

One register of the four lanes of a quad is contiguous in memory (16 bytes; 32 for f64), so that fragments of thousands
of warps become matrices by moving such pieces.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.ptx.formats import to_f32
from cutegen_lab.emulator.ptx.types import Array

_PIECE = np.complex128  # type of 16 bytes, which NumPy moves as one element


def matrix(registers: Array, kind: str, halves: int, spread: bool = False) -> Array:
    """Fragments of A or B, ``registers`` [k step, block, c·halves + h, lane], as [warp, row or column, k].

    The order along k is the same for A and B, which is all that a product needs. ``spread`` puts columns 2p + e of a
    block in the order (e, p).
    """
    steps, blocks, rows, lanes = registers.shape
    pieces = registers.reshape(steps, blocks, rows // halves, halves, lanes // 32, 8, 4).view(_PIECE)
    ordered = pieces.transpose(4, 1, 3, 5, 0, 2, 6)  # warp, block, half, q, step, c
    if spread:
        split = ordered.reshape(*ordered.shape[:3], 4, 2, *ordered.shape[4:])
        ordered = split.swapaxes(3, 4)
    flat = np.ascontiguousarray(ordered).reshape(lanes // 32, blocks * halves * 8, -1)
    return flat.view(np.float64) if kind == "f64" else to_f32(flat, kind)


def scatter(product: Array, halves: int, packed: bool) -> Array:
    """[warp, rows, columns] → [block row, block column, register element, lane]; ``packed``: […, half, lane, e].

    Columns of a block are in the order (e, p), or (p, e) where ``packed``.
    """
    warps, rows, columns = product.shape
    shape = (warps, rows // (8 * halves), halves, 8, columns // 8, 2, 4)
    pieces = product.reshape(shape).view(_PIECE)
    if packed:  # the eight columns of a row are those of the four lanes in turn
        moved = np.ascontiguousarray(pieces.transpose(1, 4, 2, 0, 3, 5, 6))
        return moved.view(product.dtype).reshape(*moved.shape[:3], warps * 32, 2)
    moved = np.ascontiguousarray(pieces.transpose(1, 4, 2, 5, 0, 3, 6))
    return moved.view(product.dtype).reshape(*moved.shape[:2], halves * 2, warps * 32)

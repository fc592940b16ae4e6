"""How the lanes of a warp hold the matrices of mma.sync (PTX ISA 9.7.14.5 "Matrix Fragments for mma").

Every form above sm_70 follows one rule. With lane = 4q + p and E elements of A or B in a register:

- A: register c·H + h (H = M / 8) holds row 8h + q, columns (4c + p)·E … + E − 1;
- B: register c holds column q, rows (4c + p)·E … + E − 1;
- C and D: element 2h + e is row 8h + q, column 2p + e; 16-bit elements share a register, e = 0 in its low half.

What the four lanes of a quad hold of one register lies together in memory (16 bytes; 32 of f64), so that fragments of
thousands of warps become matrices by moving such pieces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_lab.emulator.ptx.formats import to_f32
from cutegen_lab.emulator.ptx.types import Array

PER_REGISTER = {"f64": 1, "tf32": 1, "f16": 2, "bf16": 2, "s8": 4, "u8": 4, "e4m3": 4, "e5m2": 4, "s4": 8, "u4": 8,
                "b1": 32}  # fmt: skip
_PIECE = np.complex128  # 16 bytes that NumPy moves as one


@dataclass(frozen=True)
class Form:
    """One form of mma: its shape and element types; ``bits`` is how single bits meet (xor, and)."""

    shape: tuple[int, int, int]
    d: str
    a: str
    b: str
    c: str
    saturate: bool = False
    bits: str = ""

    @property
    def registers(self) -> tuple[int, int, int, int]:
        """How many registers of a lane hold D, A, B and C."""
        m, _, k = self.shape
        steps = k // (4 * PER_REGISTER[self.a])
        d, c = (m // 8 if kind == "f16" else m // 4 for kind in (self.d, self.c))
        return d, steps * (m // 8), steps, c

    @property
    def operations(self) -> int:
        """Of one warp: a multiplication and an addition for each element of the product."""
        m, n, k = self.shape
        return 2 * m * n * k

    @property
    def sums_longer(self) -> int:
        """How deep a product may be done in one sum: 1 where each instruction rounds or clamps its result."""
        if self.d == "f16" or self.saturate:
            return 1
        return {"s8": 256, "u8": 256}.get(self.a, 1024)  # 256 products of bytes are exact in float32


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

"""FP8 accumulation as Hopper's wgmma does it, with far fewer bits than float32 has.

One instruction adds 32 products and the accumulator: all are truncated 13 bits below the largest exponent among them
and added, and 13 bits of the fraction are kept (Khattak and Mikaitis, "FTTN", 2024; Xie et al., "MMA-Sim", 2025).
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.ptx.formats import EIGHT
from cutegen_lab.emulator.ptx.types import Array

STEP = 32  # products that one instruction adds
_FRACTION = 13
_KEPT = np.uint32(0xFFFF_FFFF << 23 - _FRACTION & 0xFFFF_FFFF)
_NOTHING = -(1 << 14)  # exponent of zero
_LEAST = -100  # smallest exponent used here, so that float32 holds every scale


def add(sums: Array, left: Array, right: Array, kinds: tuple[str, str], half: bool) -> Array:
    """``sums`` [..., M, N] + ``left`` [..., M, K] · ``right`` [..., K, N], all float32. ``half``: sums are float16."""
    exact = np.matmul(left, right) + sums
    exponents = [_exponent(values, EIGHT[kind].smallest) for values, kind in zip((left, right), kinds, strict=True)]
    for first in range(0, left.shape[-1], STEP):
        sums = _step(sums, left, right, exponents, range(first, first + STEP), half)
    return np.asarray(np.where(np.isfinite(exact), sums, exact))


def _exponent(values: Array, smallest: int) -> Array:
    found = np.maximum(np.frexp(np.where(np.isfinite(values), values, 0))[1] - 1, smallest)
    return np.where(values == 0, _NOTHING, found).astype(np.int32)


def _step(sums: Array, left: Array, right: Array, exponents: list[Array], steps: range, half: bool) -> Array:
    rows, columns = exponents
    largest = np.maximum(_exponent(sums, _LEAST), _LEAST)
    for k in steps:
        np.maximum(largest, rows[..., :, k, None] + columns[..., k, None, :], out=largest)
    scale = np.ldexp(np.float32(1), _FRACTION - largest)
    total = np.trunc(sums * scale)
    for k in steps:
        total += np.trunc(left[..., :, k, None] * right[..., k, None, :] * scale)
    total /= scale
    if half:
        return np.asarray(total.astype(np.float16).astype(np.float32))
    return np.asarray(total.view(np.uint32) & _KEPT).view(np.float32)

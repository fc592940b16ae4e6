"""Narrow number formats as float32, and eight-bit floats from wider ones (PTX ISA 5.2.3 "Alternate Floating-Point Data
Formats", 9.7.9.21 cvt)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cutegen_lab.emulator.ptx import rounding
from cutegen_lab.emulator.ptx.types import Array


class Fp8Format(NamedTuple):
    """An eight-bit float: bits of mantissa, exponent of the smallest normal number, and the largest finite value."""

    mantissa: int
    smallest: int
    largest: float


EIGHT = {"e4m3": Fp8Format(3, -6, 448.0), "e5m2": Fp8Format(2, -14, 57344.0)}
EIGHT_NAN = 0x7F


def _e4m3_values() -> Array:
    """The value of every code: no infinity, and NaN where exponent and mantissa are all ones."""
    code = np.arange(256)
    exponent, mantissa = code >> 3 & 15, code & 7
    size = np.where(exponent > 0, np.ldexp(8.0 + mantissa, exponent - 10), np.ldexp(mantissa, -9))
    size = np.where(code & EIGHT_NAN == EIGHT_NAN, np.nan, size)
    return np.where(code < 128, size, -size).astype(np.float32)


_TABLES = {
    "f16": np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32),
    "e4m3": _e4m3_values(),
    "e5m2": (np.arange(256, dtype=np.uint16) << np.uint16(8)).view(np.float16).astype(np.float32),
}


def to_f32(raw: Array, kind: str) -> Array:
    """Values of ``kind`` packed in ``raw`` (contiguous), low bits first, as float32: the last axis grows accordingly.

    Every value of these formats is exact in float32. The low 13 bits of tf32 operands are ignored, as in hardware.
    """
    if kind in ("e4m3", "e5m2"):
        return _TABLES[kind].take(raw.view(np.uint8))
    if kind == "f16":
        return _TABLES[kind].take(raw.view(np.uint16))
    if kind == "bf16":
        return rounding.bf16_to_f32(raw.view(np.uint16))
    if kind == "tf32":
        return np.asarray(raw.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    if kind in ("s8", "u8"):
        return raw.view(np.int8 if kind == "s8" else np.uint8).astype(np.float32)
    if kind in ("s4", "u4"):
        return _nibbles(raw.view(np.uint8), kind == "s4")
    if kind == "b1":
        return np.unpackbits(raw.view(np.uint8), axis=-1, bitorder="little").astype(np.float32)
    raise KeyError(kind)


def _nibbles(octets: Array, signed: bool) -> Array:
    both = np.stack([octets & np.uint8(15), octets >> np.uint8(4)], axis=-1).reshape(*octets.shape[:-1], -1)
    if signed:
        return ((both ^ np.uint8(8)).astype(np.float32)) - np.float32(8)
    return both.astype(np.float32)


def to_eight(values: Array, kind: str) -> Array:
    """f16 or f32 → e4m3 or e5m2 codes (uint8), to nearest even; overflow becomes the largest value (.satfinite)."""
    mantissa, smallest, largest = EIGHT[kind]
    wide = np.asarray(values).astype(np.float64)
    size = np.minimum(np.abs(wide), largest)
    exponent = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, smallest), smallest)
    steps = np.rint(np.ldexp(size, mantissa - exponent))
    code = ((exponent - smallest) << mantissa) + np.where(np.isnan(wide), 0, steps).astype(np.int64)
    code = np.where(np.signbit(wide), code | 128, code)
    return np.where(np.isnan(wide), EIGHT_NAN, code).astype(np.uint8)

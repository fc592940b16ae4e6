"""Number formats and roundings that NumPy has no type for (PTX ISA 5.2.3, 9.7.9.21 rounding modifiers).

Arithmetic is IEEE in the operation's own precision. Known differences from hardware: in half of all runs ``fma.f32``
rounds a float64 sum, so a result may differ by one ulp if the sum lies within 2⁻²⁹ of a tie; ``.approx`` functions
round the true value coarsely (``isa/approximate.py``) instead of using the hardware's table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx.types import Array

_SIXTEEN, _ONE, _HALF = np.uint32(16), np.uint32(1), np.uint32(0x7FFF)
_MIN_NORMAL = np.float32(2.0**-126)


@runtime
def bf16_bits(bits: Array) -> Array:
    """float32 bits → bfloat16 in the upper half of uint32, to nearest even; NaN becomes 0x7FFF."""
    out = bits >> _SIXTEEN
    out &= _ONE
    out += _HALF
    out += bits
    values = bits.view(np.float32)
    nan = values != values
    if nan.any():
        out = np.where(nan, np.uint32(0x7FFF0000), out)
    return out


@runtime
def bf16_to_f32(half: Array) -> Array:
    """bfloat16 bits (uint16) → float32."""
    return np.left_shift(np.asarray(half).astype(np.uint32), _SIXTEEN).view(np.float32)


@runtime
def pack_bf16(high: Array, low: Array, out: Array) -> None:
    """``cvt.rn.bf16x2.f32 d, high, low``, on float32 bits."""
    upper = bf16_bits(high)
    upper &= np.uint32(0xFFFF0000)
    np.bitwise_or(upper, bf16_bits(low) >> _SIXTEEN, out=out)


@runtime
def flush(values: Array, least: Any = _MIN_NORMAL) -> Array:
    """``.ftz``: magnitudes below ``least`` (default: subnormal float32) become zeros of the same sign."""
    small = np.abs(values) < least
    if small.any():
        return np.where(small, np.copysign(np.zeros((), values.dtype), values), values)
    return values


@runtime
def flush_out(values: Array) -> None:
    """:func:`flush` in place."""
    small = np.abs(values) < _MIN_NORMAL
    if small.any():
        values[small] = np.copysign(np.float32(0), values[small])


@runtime
def saturate(values: Array) -> Array:
    """``.sat``: clamps to [0, 1]; NaN becomes +0."""
    return np.where(values > 0, np.minimum(values, 1), 0).astype(values.dtype)


@runtime
def sum_to_odd(a: Array, b: Array) -> Array:
    """float64 a + b rounded to odd, so that rounding once more to a narrower format is exact (Boldo and Melquiond 2008;
    the error is Knuth's)."""
    total = np.add(a, b)
    part = total - a
    error = (a - (total - part)) + (b - part)
    fix = (error != 0) & (total.view(np.uint64) & np.uint64(1) == 0) & np.isfinite(total)
    if not fix.any():
        return total
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.where(fix, np.nextafter(total, toward), total)


def odd_f32(wide: Array) -> Array:
    """float64 → float32 rounded to odd, so that rounding once more to a narrower format is exact."""
    near = wide.astype(np.float32)
    error = wide - near
    bits = near.view(np.uint32)
    fix = (error != 0) & ((bits & 1) == 0) & np.isfinite(near)
    if fix.any():
        toward = np.where(error > 0, np.float32(np.inf), np.float32(-np.inf))
        near = np.where(fix, np.nextafter(near, toward), near)
    return near


def directed(wide: Array, near: Array, mode: str) -> Array:
    """Corrects ``near`` (``wide`` to nearest) for rounding mode rz, rm or rp. ``wide`` can hold ``near`` exactly."""
    back = near.astype(wide.dtype)
    infinity = near.dtype.type(np.inf)
    if mode == "rz":
        wrong, toward = np.abs(back) > np.abs(wide), near.dtype.type(0)
    elif mode == "rm":
        wrong, toward = back > wide, -infinity
    else:
        wrong, toward = back < wide, infinity
    return np.where(wrong, np.nextafter(near, toward), near).astype(near.dtype)


@runtime
def to_bf16(wide: Array, mode: str = "rn") -> Array:
    """float32 or float64 → bfloat16 bits (uint16)."""
    wide = np.atleast_1d(wide)
    single = wide if wide.dtype == np.float32 else odd_f32(wide)
    if mode == "rn":
        return (bf16_bits(single.view(np.uint32)) >> _SIXTEEN).astype(np.uint16)
    bits = single.view(np.uint32)
    inexact = (bits & np.uint32(0xFFFF)) != 0
    negative = (bits >> np.uint32(31)) == 1
    away = inexact & {"rz": np.zeros_like(negative), "rm": negative, "rp": ~negative}[mode] & np.isfinite(single)
    out = (bits >> _SIXTEEN) + away
    return np.where(np.isnan(single), np.uint32(0x7FFF), out).astype(np.uint16)


@runtime
def to_float(wide: Array, kind: Any, mode: str) -> Array:
    """A wider float or an integer → float ``kind`` in rounding mode rn, rz, rm or rp."""
    wide = np.atleast_1d(wide)
    near = wide.astype(kind)
    if mode == "rn":
        return near
    exact = wide.astype(np.longdouble) if wide.dtype.kind in "iu" else wide
    return directed(exact, near, mode)


@runtime
def to_integer(value: Array, kind: Any, mode: str) -> Array:
    """Float → integer ``kind``: rni, rzi, rmi or rpi, clamped to its range; NaN as in PTX ISA 9.7.9.21."""
    value = np.atleast_1d(value)
    rounded = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode](value.astype(np.float64))
    info = np.iinfo(kind)
    out = np.zeros(value.shape, kind)
    high, low = rounded >= float(info.max), rounded <= float(info.min)
    inside = ~(high | low | np.isnan(rounded))
    out[inside] = rounded[inside].astype(kind)
    out[high] = info.max
    out[low] = info.min
    nan = np.isnan(rounded)
    if nan.any() and (value.dtype == np.float64 or info.bits == 64):
        out[nan] = info.min if info.min < 0 else 1 << (info.bits - 1)
    return out


@runtime
def clamp_integer(value: Array, kind: Any) -> Array:
    """``cvt.sat`` between integers: clamps to ``kind``'s range."""
    info, given = np.iinfo(kind), np.iinfo(value.dtype)
    low, high = max(info.min, given.min), min(info.max, given.max)
    return np.clip(value, low, high).astype(kind)

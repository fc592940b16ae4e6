"""``.approx`` and ``.full`` arithmetic with the largest error that the PTX ISA allows (9.7.3; bounds below).

Hardware uses lookup tables. Here the true value is rounded more coarsely, so that a kernel which needs more accuracy
than the ISA guarantees fails. Values that few bits represent exactly stay exact. Largest errors over 2²⁰ arguments on
an H200: ex2 2.05 ulp, rcp 0.97 ulp; relative: rsqrt 2⁻²²·⁹, sqrt 2⁻²³·², lg2 2⁻²²·¹ (near one: absolute 2⁻²²·²);
absolute: sin and cos 2⁻¹⁹·⁷ within ±8. These are close to the ISA's bounds; only tanh is far more accurate than its
bound.

A kernel could recognise the emulator by results that always end in zero bits or are always below the true value. So in
some runs (:func:`as_near_as_hardware`) a result is one of the two float32 next to the true value, chosen by a seeded
hash.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx.types import Array

_TWO_PI = 2 * np.pi
_run = threading.local()  # ``noise`` of the run in this thread: None, or a number
_FEW_BITS = 0xFFF  # a value whose low 12 bits are all zero counts as exact
_NORMAL, _LARGE = np.float32(2.0**-126), np.float32(2.0**126)


@contextmanager
def as_near_as_hardware(noise: int | None) -> Iterator[None]:
    """``noise`` seeds the rounding of this thread's run; None: the largest errors that the ISA allows."""
    before, _run.noise = getattr(_run, "noise", None), noise
    try:
        yield
    finally:
        _run.noise = before


def is_near() -> bool:
    """True if the run in this thread is as accurate as hardware."""
    return getattr(_run, "noise", None) is not None


def _chosen(bits: Array) -> Array:
    """True for a pseudo-random quarter of the numbers."""
    mixed = (bits ^ np.uint32(_run.noise)) * np.uint32(0x9E3779B1)
    chosen: Array = np.asarray(mixed >> np.uint32(30) == 0)
    return chosen


def _beside(wide: Any) -> Array:
    """float64 → one of the two float32 next to it; exact values stay."""
    wide = np.atleast_1d(wide)
    near = wide.astype(np.float32)
    moved = _chosen(near.view(np.uint32)) & np.isfinite(near) & (near != wide)
    other = np.nextafter(near, np.where(wide > near, np.inf, -np.inf).astype(np.float32))
    return np.asarray(np.where(moved, other, near))


@runtime
def ex2_approx(a: Any, out: Array) -> None:
    """9.7.3.21 ex2.approx.f32: 2 ulp. The last bit is cleared."""
    np.exp2(a, out=out)
    bits = out.view(np.uint32)
    if is_near():
        bits ^= (_chosen(bits >> np.uint32(1)) & (bits & np.uint32(_FEW_BITS) != 0) & np.isfinite(out)).astype(
            np.uint32
        )
        return
    bits &= np.uint32(0xFFFFFFFE)


@runtime
def tanh_approx(a: Any, out: Array) -> None:
    """9.7.3.22 tanh.approx.f32: relative error 2⁻¹¹. Within ±1: rounded to nearest with 12 bits.

    An H200's error is at most 2⁻¹⁶·⁶ (2⁻¹⁸·⁶ absolute from 2 on, less from 3 on). Beyond ±1 this is as accurate as an
    H200: 1 ± tanh cancels there, and 16-bit sigmoid and GELU kernels rely on the hardware's accuracy.
    """
    if is_near():
        out[:] = _beside(np.tanh(a, dtype=np.float64))
        return
    np.tanh(a, out=out)
    size, bits = np.abs(a), out.view(np.uint32)
    near = np.where(size < 1, _rounded(bits, 12), _rounded(bits, 7)).view(np.float32)
    far = np.where((size < 3) | (size >= 4) & (size < 5), _grid(out, 18), _grid(out, 20)).astype(np.float32)
    out[:] = np.where(size < 2, near, far)


@runtime
def lg2_approx(a: Any, out: Array) -> None:
    """9.7.3.20 lg2.approx.f32: error 2⁻²², absolute between 0.5 and 2, otherwise relative."""
    if is_near():
        out[:] = _beside(np.log2(a, dtype=np.float64))
        return
    wide = np.log2(a, dtype=np.float64)
    near = np.abs(wide) < 1
    out[:] = np.where(near, _grid(wide, 21), _toward_zero(wide))


@runtime
def sin_approx(a: Any, out: Array) -> None:
    """9.7.3.18 sin.approx.f32: absolute error 2⁻²⁰·⁵ within ±2π, 2⁻¹⁴·⁷ within ±100π, no bound beyond."""
    if is_near():
        out[:] = _beside(np.sin(a, dtype=np.float64))
        return
    out[:] = _turned(a, np.sin(a, dtype=np.float64))


@runtime
def cos_approx(a: Any, out: Array) -> None:
    """9.7.3.19 cos.approx.f32: the same errors as sin."""
    if is_near():
        out[:] = _beside(np.cos(a, dtype=np.float64))
        return
    out[:] = _turned(a, np.cos(a, dtype=np.float64))


@runtime
def rcp_approx(a: Any, out: Array) -> None:
    """9.7.3.13 rcp.approx.f32: 1 ulp. Rounded toward zero."""
    if is_near():
        out[:] = _beside(np.divide(1.0, a, dtype=np.float64))
        return
    out[:] = _toward_zero(np.divide(1.0, a, dtype=np.float64))


@runtime
def sqrt_approx(a: Any, out: Array) -> None:
    """9.7.3.15 sqrt.approx.f32: relative error 2⁻²³. Rounded toward zero."""
    if is_near():
        out[:] = _beside(np.sqrt(a, dtype=np.float64))
        return
    out[:] = _toward_zero(np.sqrt(a, dtype=np.float64))


@runtime
def rsqrt_approx(a: Any, out: Array) -> None:
    """9.7.3.16 rsqrt.approx.f32: relative error 2⁻²²·⁹. Rounded toward zero."""
    if is_near():
        out[:] = _beside(np.divide(1.0, np.sqrt(a, dtype=np.float64)))
        return
    out[:] = _toward_zero(np.divide(1.0, np.sqrt(a, dtype=np.float64)))


@runtime
def gross_f64(out: Array) -> None:
    """9.7.3.14 rcp.approx.ftz.f64, 9.7.3.17 rsqrt.approx.ftz.f64: the lower 32 bits of the result are zeros."""
    bits = out.view(np.uint64)
    bits &= np.uint64(0xFFFFFFFF00000000)


@runtime
def divide_approx(a: Any, b: Any, out: Array, full: bool) -> None:
    """9.7.3.8 div.approx.f32 and .full: a · (1/b), 2 ulp; .full does so for every b, .approx gives 0 for b > 2¹²⁶."""
    inverse = _beside(np.divide(1.0, b, dtype=np.float64)) if is_near() else np.divide(np.float32(1), b)
    quotient = np.multiply(a, inverse)
    size = np.abs(b)
    odd = ~((size >= _NORMAL) & (size <= _LARGE))
    if np.any(odd):
        large = np.isfinite(b) & (size > _LARGE)
        other = np.divide(a, b) if full else np.where(large, np.multiply(a, np.float32(0)), quotient)
        quotient = np.where(odd, other, quotient)
    out[:] = quotient


def _turned(a: Any, wide: Array) -> Array:
    return np.asarray(np.where(np.abs(a) <= _TWO_PI, _grid(wide, 20), _grid(wide, 14)))


def _rounded(bits: Array, dropped: int) -> Array:
    """float32 ``bits`` rounded to nearest: the last ``dropped`` bits become zeros."""
    return bits + np.uint32(1 << (dropped - 1)) & np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)


def _grid(wide: Array, bits: int) -> Array:
    """``wide`` rounded to the nearest multiple of 2⁻ᵇⁱᵗˢ."""
    return np.asarray(np.rint(wide * 2.0**bits) * 2.0**-bits)


def _toward_zero(wide: Array) -> Array:
    """float64 → float32, rounded toward zero; overflow still becomes infinite."""
    near = np.atleast_1d(wide).astype(np.float32)
    beyond = (np.abs(near) > np.abs(wide)) & np.isfinite(near)
    return np.asarray(np.where(beyond, np.nextafter(near, np.float32(0)), near))

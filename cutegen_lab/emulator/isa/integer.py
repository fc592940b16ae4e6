"""Integer arithmetic (PTX ISA 9.7.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.isa import extended, floating, half
from cutegen_lab.emulator.ptx.types import INTEGER_TYPES, Array
from cutegen_lab.emulator.translate.emit import Emit, opcode

_BINARY = {"add": "add", "sub": "subtract"}
_PACKED = ("u16x2", "s16x2")
_DOUBLE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


@opcode("add", "sub")
def add_sub(e: Emit) -> None:
    """9.7.1.1 add, 9.7.1.2 sub; floating forms in :mod:`floating` and :mod:`half`."""
    if e.ins.opcode == "add" and (packed := e.one_of(*_PACKED)):
        _pairs(e, packed, "add")
        return
    kind = e.type()
    if kind not in INTEGER_TYPES:
        floating.arithmetic(e, kind) if kind in ("f32", "f64") else half.arithmetic(e, kind)
        return
    if "cc" in e.mods:
        extended.add_sub(e, kind, reads=False)
        return
    e.klass = "integer"
    a, b, d = e.s(e.ops[1], kind), e.s(e.ops[2], kind), e.d(e.ops[0], kind)
    if e.has("sat"):
        e.line(f"{d}[:]=clamp_integer(np.{_BINARY[e.ins.opcode]}({a},{b},dtype=i64),i32)")
    else:
        e.line(f"np.{_BINARY[e.ins.opcode]}({a},{b},out={d})")


@opcode("mul", "mad")
def mul_mad(e: Emit) -> None:
    """9.7.1.3 mul, 9.7.1.4 mad: .lo, .hi, .wide."""
    kind = e.type()
    if kind not in INTEGER_TYPES:
        if e.ins.opcode == "mad":
            floating.fused(e, kind)
        else:
            floating.arithmetic(e, kind) if kind in ("f32", "f64") else half.arithmetic(e, kind)
        return
    part = e.one_of("lo", "hi", "wide")
    if "cc" in e.mods:
        extended.mad(e, kind, part, reads=False)
        return
    e.klass = "integer"
    a, b = e.s(e.ops[1], kind), e.s(e.ops[2], kind)
    result = kind if part != "wide" else _DOUBLE[kind]
    if part == "lo":
        product = f"np.multiply({a},{b})"
    elif part == "wide":
        product = f"np.multiply({a},{b},dtype={_numpy(result)},casting='unsafe')"
    else:
        product = f"multiply_high({a},{b})"
    if e.ins.opcode == "mad":
        addend = e.s(e.ops[3], result)
        e.line(f"np.add({product},{addend},out={e.d(e.ops[0], result)})")
    elif part == "hi":
        e.put(0, result, product)
    else:
        e.line(f"{product[:-1]},out={e.d(e.ops[0], result)})")


@opcode("mul24", "mad24")
def mul24(e: Emit) -> None:
    """9.7.1.5 mul24, 9.7.1.6 mad24 (.lo)."""
    kind, _ = e.type("u32", "s32"), e.one_of("lo")
    e.klass = "integer"
    a, b = (f"(np.left_shift({e.s(o, kind)},{_k(e, kind, 8)})>>{_k(e, kind, 8)})" for o in e.ops[1:3])
    tail = f"+{e.s(e.ops[3], kind)}" if e.ins.opcode == "mad24" else ""
    e.put(0, kind, f"{a}*{b}{tail}")


@opcode("div", "rem")
def div_rem(e: Emit) -> None:
    """9.7.1.8 div, 9.7.1.9 rem: truncating; division by zero gives all ones, as on an H200."""
    kind = e.type()
    if kind not in INTEGER_TYPES:
        floating.divide(e, kind)
        return
    e.klass = "integer"
    e.put(0, kind, f"{'divide' if e.ins.opcode == 'div' else 'remainder'}({e.s(e.ops[1], kind)},{e.s(e.ops[2], kind)})")


@opcode("abs", "neg")
def abs_neg(e: Emit) -> None:
    """9.7.1.10 abs, 9.7.1.11 neg."""
    kind = e.type()
    if kind not in INTEGER_TYPES:
        floating.sign(e, kind) if kind in ("f32", "f64") else half.sign(e, kind)
        return
    e.klass = "integer"
    function = "absolute" if e.ins.opcode == "abs" else "negative"
    e.line(f"np.{function}({e.s(e.ops[1], kind)},out={e.d(e.ops[0], kind)})")


@opcode("min", "max")
def min_max(e: Emit) -> None:
    """9.7.1.12 min, 9.7.1.13 max, and their floating and packed forms."""
    if packed := e.one_of(*_PACKED):
        _pairs(e, packed, f"{e.ins.opcode}imum")
        return
    kind = e.type()
    if kind not in INTEGER_TYPES:
        floating.extreme(e, kind) if kind in ("f32", "f64") else half.extreme(e, kind)
        return
    e.klass = "integer"
    target = e.d(e.ops[0], kind)
    e.line(f"np.{e.ins.opcode}imum({e.s(e.ops[1], kind)},{e.s(e.ops[2], kind)},out={target})")
    if kind == "s32" and e.has("relu"):
        e.line(f"np.maximum({target},0,out={target})")


def _pairs(e: Emit, packed: str, function: str) -> None:
    """Two 16-bit integers in one register (.u16x2, .s16x2)."""
    e.klass = "integer"
    view = "np.uint16" if packed == "u16x2" else "np.int16"
    a, b = (f"np.atleast_1d({e.s(o, 'b32')}).view({view})" for o in e.ops[1:3])
    target = f"{e.d(e.ops[0], 'b32')}.view({view})"
    e.line(f"{target}[:]=np.{function}({a},{b})")
    if packed == "s16x2" and function != "add" and e.has("relu"):
        e.line(f"{target}[:]=np.maximum({target},0)")


@opcode("sad")
def sad(e: Emit) -> None:
    """9.7.1.7 sad: c + |a − b|."""
    kind = e.type(*INTEGER_TYPES)
    e.klass = "integer"
    a, b, c = (e.s(o, kind) for o in e.ops[1:4])
    e.put(0, kind, f"np.where({a}<{b},{b}-{a},{a}-{b})+{c}")


@opcode("dp4a", "dp2a")
def dot_product(e: Emit) -> None:
    """9.7.1.23 dp4a (four bytes by four bytes, accumulated), .24 dp2a (two halves by the low or high two bytes)."""
    half = e.one_of("lo", "hi") if e.ins.opcode == "dp2a" else ""
    a_kind, b_kind = e.types()
    e.klass = "integer"
    views = {"u32": "np.uint8", "s32": "np.int8"}
    a_view = views[a_kind].replace("8", "16") if half else views[a_kind]
    a, b = e.s(e.ops[1], "b32"), e.s(e.ops[2], "b32")
    out = "s32" if "s32" in (a_kind, b_kind) else "u32"
    e.put(
        0, out, f"dot({a},{a_view},{b},{views[b_kind]},{2 * (half == 'hi')}).astype({_numpy(out)})+{e.s(e.ops[3], out)}"
    )


def _numpy(kind: str) -> str:
    return ("u" if kind[0] == "u" else "i") + kind[1:]


def _k(e: Emit, kind: str, value: int) -> str:
    return e.const({"u32": np.uint32, "s32": np.int32}[kind](value))


def _broadcast(a: Any, b: Any) -> tuple[Array, Array]:
    both: Any = np.broadcast_arrays(a, b)
    return both[0], both[1]


@runtime
def multiply_high(a: Array, b: Array) -> Array:
    """Upper half of the full product."""
    a, b = _broadcast(a, b)
    kind, bits = a.dtype, a.dtype.itemsize * 8
    if bits < 64:
        wide: Any = {"u2": np.uint32, "i2": np.int32, "u4": np.uint64, "i4": np.int64}[f"{kind.kind}{bits // 8}"]
        return (np.multiply(a, b, dtype=wide, casting="unsafe") >> bits).astype(kind)
    ua, ub = a.astype(np.uint64), b.astype(np.uint64)
    mask, half_width = np.uint64(0xFFFFFFFF), np.uint64(32)
    al, ah, bl, bh = ua & mask, ua >> half_width, ub & mask, ub >> half_width
    middle = ah * bl + (al * bl >> half_width)
    low = (middle & mask) + al * bh
    high = ah * bh + (middle >> half_width) + (low >> half_width)
    if kind.kind == "i":
        high = high - np.where(a < 0, ub, np.uint64(0)) - np.where(b < 0, ua, np.uint64(0))
    return np.asarray(high.astype(kind))


@runtime
def divide(a: Array, b: Array) -> Array:
    """Integer division rounded toward zero."""
    a, b = _broadcast(a, b)
    zero = b == 0
    if a.dtype.kind == "u":
        return np.where(zero, ~np.zeros((), a.dtype), a // np.where(zero, 1, b).astype(a.dtype))
    safe = np.where(zero, 1, b).astype(a.dtype)
    quotient = a // safe
    quotient = quotient + ((a % safe != 0) & ((a < 0) != (safe < 0)))
    return np.asarray(np.where(zero, a.dtype.type(-1), quotient).astype(a.dtype))


@runtime
def remainder(a: Array, b: Array) -> Array:
    """Remainder with the sign of the dividend."""
    a, b = _broadcast(a, b)
    zero = b == 0
    ones = ~np.zeros((), a.dtype)
    return np.asarray(np.where(zero, ones, np.fmod(a, np.where(zero, 1, b).astype(a.dtype))).astype(a.dtype))


@runtime
def dot(a: Any, a_view: Any, b: Any, b_view: Any, first: int) -> Array:
    """Dot product of the elements of ``a`` (type ``a_view``) and as many bytes of ``b``, from byte ``first`` on."""
    left = np.atleast_1d(a).view(a_view).reshape(np.size(a), -1).astype(np.int64)
    right = np.atleast_1d(b).view(b_view).reshape(-1, 4).astype(np.int64)
    return np.asarray((left * right[:, first : first + left.shape[1]]).sum(axis=1))

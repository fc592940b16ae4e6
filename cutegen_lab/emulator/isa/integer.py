"""Integer arithmetic (PTX ISA 9.7.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator.emit import Emit, opcode, runtime
from cutegen_lab.emulator.isa import extended, floating, half
from cutegen_lab.emulator.types import INTEGER_TYPES, WIDTH, Array

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
    """9.7.1.8 div, 9.7.1.9 rem: truncating; by zero gives all ones, and the dividend, as NVIDIA GPUs do."""
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


@opcode("popc")
def popc(e: Emit) -> None:
    """9.7.1.14 popc: set bits, as u32."""
    kind = e.type("b32", "b64")
    e.klass = "integer"
    e.put(0, "u32", f"np.bitwise_count({e.s(e.ops[1], kind)})")


@opcode("clz")
def clz(e: Emit) -> None:
    """9.7.1.15 clz: leading zeros, as u32."""
    kind = e.type("b32", "b64")
    e.klass = "integer"
    e.put(0, "u32", f"{8 * WIDTH[kind]}-bit_length({e.s(e.ops[1], kind)})")


@opcode("bfind")
def bfind(e: Emit) -> None:
    """9.7.1.16 bfind: position of the highest bit that differs from the sign, or 0xFFFFFFFF; .shiftamt."""
    shift = e.has("shiftamt")
    kind = e.type("u32", "u64", "s32", "s64")
    e.klass = "integer"
    a = e.s(e.ops[1], kind)
    if kind[0] == "s":
        a = f"np.where({a}<0,~{a},{a}).astype(u{kind[1:]})"
    position = f"(bit_length({a}).astype(i64)-1)"
    if shift:
        position = f"np.where({position}<0,-1,{8 * WIDTH[kind] - 1}-{position})"
    e.put(0, "u32", f"{position}.astype(u32)")


@opcode("brev")
def brev(e: Emit) -> None:
    """9.7.1.18 brev: bits in reverse order."""
    kind = e.type("b32", "b64")
    e.klass = "integer"
    e.put(0, kind, f"reverse_bits({e.s(e.ops[1], kind)})")


@opcode("bfe")
def bfe(e: Emit) -> None:
    """9.7.1.19 bfe: bit field extract."""
    kind = e.type("u32", "u64", "s32", "s64")
    e.klass = "integer"
    position, length = (e.s(o, "u32") for o in e.ops[2:4])
    e.put(0, kind, f"extract_bits({e.s(e.ops[1], kind)},{position},{length})")


@opcode("bfi")
def bfi(e: Emit) -> None:
    """9.7.1.20 bfi: bit field insert."""
    kind = e.type("b32", "b64")
    e.klass = "integer"
    position, length = (e.s(o, "u32") for o in e.ops[3:5])
    e.put(0, kind, f"insert_bits({e.s(e.ops[1], kind)},{e.s(e.ops[2], kind)},{position},{length})")


@opcode("dp4a", "dp2a")
def dot(e: Emit) -> None:
    """9.7.1.23 dp4a (four bytes by four bytes, accumulated)."""
    if e.ins.opcode == "dp2a":
        raise e.refuse("the emulator does not execute `dp2a`")
    a_kind, b_kind = e.types()
    e.klass = "integer"
    views = {"u32": "np.uint8", "s32": "np.int8"}
    a, b = e.s(e.ops[1], "b32"), e.s(e.ops[2], "b32")
    out = "s32" if "s32" in (a_kind, b_kind) else "u32"
    e.put(0, out, f"dot4({a},{views[a_kind]},{b},{views[b_kind]}).astype({_numpy(out)})+{e.s(e.ops[3], out)}")


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
    return np.asarray(np.where(zero, a, np.fmod(a, np.where(zero, 1, b).astype(a.dtype))).astype(a.dtype))


@runtime
def bit_length(a: Any) -> Array:
    """Position of the highest set bit plus one (0 for 0), as uint32."""
    a = np.atleast_1d(a)
    bits = a.dtype.itemsize * 8
    a = a.copy()
    for step in (1, 2, 4, 8, 16, 32):
        if step < bits:
            a |= a >> a.dtype.type(step)
    return np.asarray(np.bitwise_count(a).astype(np.uint32))


@runtime
def reverse_bits(a: Any) -> Array:
    a = np.atleast_1d(a)
    width = a.dtype.itemsize
    octets = np.ascontiguousarray(np.ascontiguousarray(a).view(np.uint8).reshape(-1, width)[:, ::-1])
    bits = np.unpackbits(octets, axis=1, bitorder="little").reshape(-1, width, 8)[:, :, ::-1]
    return np.asarray(np.packbits(bits.reshape(-1, width * 8), axis=1, bitorder="little").view(a.dtype).ravel())


@runtime
def extract_bits(a: Any, position: Any, length: Any) -> Array:
    a = np.atleast_1d(a)
    bits = a.dtype.itemsize * 8
    position, length = np.asarray(position, np.int64) & 0xFF, np.asarray(length, np.int64) & 0xFF
    raw = a.view(f"u{bits // 8}").astype(np.uint64)
    signed = a.dtype.kind == "i"
    sign_at = np.minimum(position + length - 1, bits - 1)
    sign = (raw >> np.maximum(sign_at, 0).astype(np.uint64)) & 1 if signed else np.zeros_like(raw)
    sign = np.where(length == 0, np.uint64(0), sign)
    field = raw >> position.astype(np.uint64)
    taken = np.clip(np.minimum(length, bits - position), 0, bits)
    mask = _ones(taken)
    return np.asarray(np.where(sign == 1, field & mask | ~mask, field & mask).astype(f"u{bits // 8}").view(a.dtype))


@runtime
def insert_bits(a: Any, b: Any, position: Any, length: Any) -> Array:
    a, b = np.atleast_1d(a), np.atleast_1d(b)
    kind, bits = b.dtype, b.dtype.itemsize * 8
    position, length = np.asarray(position, np.int64) & 0xFF, np.asarray(length, np.int64) & 0xFF
    mask = _ones(np.clip(np.minimum(length, bits - position), 0, bits)) << position.astype(np.uint64)
    return np.asarray(
        (b.astype(np.uint64) & ~mask | (a.astype(np.uint64) << position.astype(np.uint64)) & mask).astype(kind)
    )


def _ones(count: Array) -> Array:
    """``count`` low bits set, 0 ≤ count ≤ 64."""
    full = ~np.uint64(0)
    return np.asarray(np.where(count == 0, np.uint64(0), full >> np.clip(64 - count, 0, 63).astype(np.uint64)))


@runtime
def dot4(a: Any, a_view: Any, b: Any, b_view: Any) -> Array:
    left, right = (np.atleast_1d(x).view(v).reshape(-1, 4).astype(np.int64) for x, v in ((a, a_view), (b, b_view)))
    return np.asarray((left * right).sum(axis=1))

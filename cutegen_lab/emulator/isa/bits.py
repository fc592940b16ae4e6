"""Counting, finding, reversing and moving bits (PTX ISA 9.7.1.14 to 9.7.1.22)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx.types import WIDTH, Array
from cutegen_lab.emulator.translate.emit import Emit, opcode


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
    """9.7.1.16 bfind: position of the highest bit that differs from the sign bit, or 0xFFFFFFFF; .shiftamt: the shift
    that moves this bit to the highest position."""
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


@opcode("szext")
def szext(e: Emit) -> None:
    """9.7.1.21 szext: the low b bits, extended by their sign or by zeros."""
    length = _up_to_32(e, e.ops[2], e.one_of("clamp", "wrap"))
    kind = e.type("u32", "s32")
    e.klass = "integer"
    e.put(0, kind, f"extract_bits({e.s(e.ops[1], kind)},u32(0),{length})")


@opcode("bmsk")
def bmsk(e: Emit) -> None:
    """9.7.1.22 bmsk: b bits set from bit a on."""
    mode = e.one_of("clamp", "wrap")
    e.type("b32")
    e.klass = "integer"
    first, length = (_up_to_32(e, operand, mode) for operand in e.ops[1:3])
    e.put(0, "b32", f"insert_bits(u32(0xFFFFFFFF),np.zeros(g.n,u32),{first},{length})")


def _up_to_32(e: Emit, operand: ptx.Operand, mode: str) -> str:
    value = e.s(operand, "u32")
    return f"({value}&u32(31))" if mode == "wrap" else f"np.minimum({value},u32(32))"


@opcode("bfi")
def bfi(e: Emit) -> None:
    """9.7.1.20 bfi: bit field insert."""
    kind = e.type("b32", "b64")
    e.klass = "integer"
    position, length = (e.s(o, "u32") for o in e.ops[3:5])
    e.put(0, kind, f"insert_bits({e.s(e.ops[1], kind)},{e.s(e.ops[2], kind)},{position},{length})")


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

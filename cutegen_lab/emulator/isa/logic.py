"""Logic, shift and byte permutation (PTX ISA 9.7.8, 9.7.9.7 prmt)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx.types import NUMPY, VIEW, Array
from cutegen_lab.emulator.translate.emit import Emit, opcode

_BITS = ("pred", "b16", "b32", "b64")


@opcode("and", "or", "xor")
def bitwise(e: Emit) -> None:
    """9.7.8.1 and, .2 or, .3 xor."""
    kind = e.type(*_BITS)
    e.klass = "integer"
    a, b = e.s(e.ops[1], kind), e.s(e.ops[2], kind)
    e.line(f"np.bitwise_{e.ins.opcode}({a},{b},out={e.d(e.ops[0], kind)})")


@opcode("not", "cnot")
def negate(e: Emit) -> None:
    """9.7.8.4 not, .5 cnot."""
    kind = e.type(*_BITS)
    e.klass = "integer"
    if e.ins.opcode == "cnot":
        e.put(0, kind, f"{e.s(e.ops[1], kind)}==0")
    else:
        e.line(f"np.invert({e.s(e.ops[1], kind)},out={e.d(e.ops[0], kind)})")


@opcode("shl", "shr")
def shift(e: Emit) -> None:
    """9.7.8.8 shl, .9 shr: an amount beyond the width shifts out all bits, as in NumPy."""
    kind = e.type("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64")
    e.klass = "integer"
    view = VIEW[kind]
    function = "left_shift" if e.ins.opcode == "shl" else "right_shift"
    if isinstance(e.ops[2], ptx.Imm):
        amount = e.const(NUMPY[view](min(e.ops[2].value & 0xFFFFFFFF, 127)))
    else:
        amount = f"np.minimum({e.s(e.ops[2], 'u32')},u32(127)).astype({e.constant_type(view)})"
    e.line(f"np.{function}({e.s(e.ops[1], kind)},{amount},out={e.d(e.ops[0], kind)})")


@opcode("shf")
def funnel(e: Emit) -> None:
    """9.7.8.7 shf: 32 bits out of the 64-bit value {b, a}."""
    left = e.one_of("l", "r") == "l"
    wrap = e.one_of("wrap", "clamp") == "wrap"
    e.type("b32")
    e.klass = "integer"
    a, b, c = (e.s(o, "u32") for o in e.ops[1:4])
    e.put(0, "b32", f"funnel_shift({a},{b},{c},{left},{wrap})")


@opcode("lop3")
def lop3(e: Emit) -> None:
    """9.7.8.6 lop3: any function of three bits, given by its truth table."""
    e.type("b32")
    e.klass = "integer"
    if not isinstance(e.ops[4], ptx.Imm):
        raise e.refuse("`lop3` needs a constant truth table")
    a, b, c = (e.s(o, "b32") for o in e.ops[1:4])
    e.put(0, "b32", f"three_way({a},{b},{c},{e.ops[4].value})")


@opcode("prmt")
def prmt(e: Emit) -> None:
    """9.7.9.7 prmt: each byte of the result is one of eight bytes or its sign; a mode derives all selectors from two
    bits of c."""
    mode = e.one_of("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    e.type("b32")
    e.klass = "integer"
    a, b, c = (e.s(o, "u32") for o in e.ops[1:4])
    e.put(0, "b32", f"permute_bytes({a},{b},{f'byte_selectors({c},{mode!r})' if mode else c})")


@runtime
def funnel_shift(a: Array, b: Array, c: Array, left: bool, wrap: bool) -> Array:
    amount = (np.asarray(c) & np.uint32(31)) if wrap else np.minimum(c, np.uint32(32))
    amount = amount.astype(np.uint64)
    both = np.asarray(b).astype(np.uint64) << np.uint64(32) | np.asarray(a).astype(np.uint64)
    shifted = (both << amount) >> np.uint64(32) if left else both >> amount
    return np.asarray(shifted).astype(np.uint32)


@runtime
def three_way(a: Array, b: Array, c: Array, table: int) -> Array:
    out = np.zeros_like(np.atleast_1d(a))
    for row in range(8):
        if table >> row & 1:
            out = out | (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return out


_SELECTED: dict[str, Callable[[int, int], int]] = {
    "f4e": lambda c, i: c + i, "b4e": lambda c, i: (c - i) & 7, "rc8": lambda c, i: c, "ecl": max, "ecr": min,
    "rc16": lambda c, i: 2 * (c & 1) + (i & 1),
}  # fmt: skip
"""By mode: number of the byte that is selected for byte ``i`` of the result, from the low two bits ``c`` of the
selector."""


@runtime
def byte_selectors(c: Any, mode: str) -> Array:
    """Selectors of the default mode that are equivalent to ``mode`` with the low two bits of ``c``."""
    table = [sum(_SELECTED[mode](low, i) << 4 * i for i in range(4)) for low in range(4)]
    return np.asarray(np.array(table, np.uint32)[np.asarray(c) & np.uint32(3)])


@runtime
def permute_bytes(a: Any, b: Any, c: Any) -> Array:
    both = np.asarray(b).astype(np.uint64) << np.uint64(32) | np.asarray(a).astype(np.uint64)
    out = np.zeros(np.broadcast(both, c).shape, np.uint64)
    for position in range(4):
        selector = np.asarray(c).astype(np.uint64) >> np.uint64(4 * position)
        byte = both >> ((selector & np.uint64(7)) * np.uint64(8)) & np.uint64(255)
        sign = np.where(byte >> np.uint64(7) == 1, np.uint64(255), np.uint64(0))
        out |= np.where(selector & np.uint64(8) != 0, sign, byte) << np.uint64(8 * position)
    return out.astype(np.uint32)


@opcode("trap", "brkpt")
def stop(e: Emit) -> None:
    """9.7.19.4 trap, .1 brkpt."""
    e.klass = "control"
    e.line(f"stopped(g,{e.ins.opcode!r})")


@runtime
def stopped(g: Any, name: str) -> None:
    raise Trap(Verdict.LAUNCH_FAILURE, f"the kernel executed `{name}`", int(g.gid[0]))

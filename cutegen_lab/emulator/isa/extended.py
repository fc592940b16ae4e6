"""Extended-precision integer arithmetic: the carry flag ``CC.CF`` is one more predicate register (PTX ISA 9.7.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.translate.emit import Emit, opcode

CARRY = ptx.Reg("%carry", "P")
_TYPES = ("u32", "s32", "u64", "s64")


def add_sub(e: Emit, kind: str, reads: bool) -> None:
    """9.7.2.1 add.cc, .2 addc, .3 sub.cc, .4 subc."""
    if kind not in _TYPES:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    e.klass = "integer"
    bits = f"u{kind[1:]}"
    carry = e.s(CARRY, "pred") if reads else "False"
    function = "add_carry" if e.ins.opcode.startswith("add") else "subtract_borrow"
    _finish(e, bits, f"{function}({e.s(e.ops[1], bits)},{e.s(e.ops[2], bits)},{carry})")


def mad(e: Emit, kind: str, part: str, reads: bool) -> None:
    """9.7.2.5 mad.cc, .6 madc."""
    if kind not in _TYPES or part not in ("lo", "hi"):
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    e.klass = "integer"
    bits = f"u{kind[1:]}"
    a, b = e.s(e.ops[1], kind), e.s(e.ops[2], kind)
    product = f"np.multiply({a},{b})" if part == "lo" else f"multiply_high({a},{b})"
    carry = e.s(CARRY, "pred") if reads else "False"
    _finish(e, bits, f"add_carry(np.asarray({product}).view({bits}),{e.s(e.ops[3], bits)},{carry})")


def _finish(e: Emit, bits: str, expression: str) -> None:
    sets = e.has("cc")
    e.line(f"w,x={expression}")
    e.line(f"{e.d(e.ops[0], bits)}[:]=w")
    if sets:
        e.line(f"{e.d(CARRY, 'pred')}[:]=x")


@opcode("addc", "subc")
def addc_subc(e: Emit) -> None:
    """9.7.2.2 addc, .4 subc."""
    add_sub(e, e.type(), reads=True)


@opcode("madc")
def madc(e: Emit) -> None:
    """9.7.2.6 madc."""
    kind = e.type()
    mad(e, kind, e.one_of("lo", "hi"), reads=True)


@runtime
def add_carry(a: Any, b: Any, carry: Any) -> tuple[Array, Array]:
    """(a + b + carry, carry out) on unsigned words."""
    a = np.asarray(a)
    first = a + b
    total = first + np.asarray(carry).astype(a.dtype)
    return np.asarray(total), np.asarray((first < a) | (total < first))


@runtime
def subtract_borrow(a: Any, b: Any, borrow: Any) -> tuple[Array, Array]:
    """(a − b − borrow, borrow out) on unsigned words."""
    a = np.asarray(a)
    first = a - b
    taken = np.asarray(borrow).astype(a.dtype)
    return np.asarray(first - taken), np.asarray((a < b) | (first < taken))

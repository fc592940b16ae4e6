"""Comparison and selection (PTX ISA 9.7.6, 9.7.7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx.types import VIEW, Array
from cutegen_lab.emulator.translate.emit import Emit, opcode

_INTEGER = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    "lo": "less", "ls": "less_equal", "hi": "greater", "hs": "greater_equal",
}  # fmt: skip
_FLOAT = (*_INTEGER, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def _comparison(e: Emit, kind: str) -> str:
    """Expression that compares operands 1 and 2: a bool for each lane. ``.ftz``: subnormal numbers count as zeros."""
    ftz = e.has("ftz")
    compare = e.one_of("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", *_INTEGER)
    if not compare:
        raise e.refuse(f"the emulator does not execute the comparison of `{e.ins.name}`")
    if kind in ("bf16", "f16", "f32", "f64", "f16x2", "bf16x2"):
        a, b = (_floating(e, i, kind, ftz) for i in (1, 2))
        if compare in ("eq", "lt", "le", "gt", "ge"):
            return f"np.{_INTEGER[compare]}({a},{b})"
        return f"compare_floats({a},{b},{compare!r})"
    if compare in ("lo", "ls", "hi", "hs") and kind[0] == "s":
        raise e.refuse(f"comparison .{compare} is for unsigned values")
    return f"np.{_INTEGER[compare]}({e.s(e.ops[1], kind)},{e.s(e.ops[2], kind)})"


def _floating(e: Emit, index: int, kind: str, ftz: bool) -> str:
    if kind == "bf16":
        return f"bf16_to_f32({e.s(e.ops[index], 'b16')})"
    least = "" if not ftz else ",f16(2.0**-14)" if kind.startswith("f16") else ",f32(2.0**-126)"
    value = f"half_in({e.s(e.ops[index], 'b32')},{kind!r})" if kind.endswith("x2") else e.s(e.ops[index], kind)
    return f"flush({value}{least})" if least else value


@opcode("setp")
def setp(e: Emit) -> None:
    """9.7.6.2 setp, also combined with a predicate (.and .or .xor). ``q`` of ``p|q`` is the negated comparison; for
    packed types it is the comparison of the upper halves (9.7.7.2)."""
    kind = e.type()
    e.klass = "integer" if VIEW[kind] in "HISULD" else kind
    logic = e.one_of("and", "or", "xor")
    result = _comparison(e, kind)
    target = e.ops[0]
    if not logic and isinstance(target, ptx.Reg) and not kind.endswith("x2"):
        if result.startswith("np."):
            e.line(f"{result[:-1]},out={e.d(target, 'pred')})")
        else:
            e.line(f"{e.d(target, 'pred')}[:]={result}")
        return
    other = e.s(e.ops[3], "pred") if logic else ""
    e.line(f"w={result}")
    both = (target.first, target.second) if isinstance(target, ptx.Pair) else (target, ptx.Sink())
    outcomes = []
    values = ("w[...,::2]", "w[...,1::2]") if kind.endswith("x2") else ("w", "~w")
    for name, value in zip(both, values, strict=True):
        if not isinstance(name, ptx.Sink):
            outcomes.append((name, f"np.bitwise_{logic}({value},{other})" if logic else value))
    for i, (_, value) in enumerate(outcomes):
        e.line(f"w{i}={value}")
    for i, (name, _) in enumerate(outcomes):
        e.line(f"{e.d(name, 'pred')}[:]=w{i}")


@opcode("set")
def set_value(e: Emit) -> None:
    """9.7.6.1 set: if true all ones, or 1.0 for f32; otherwise zero."""
    out, kind = e.types()
    if kind.endswith("x2"):
        raise e.refuse(f"the emulator does not execute `{e.ins.name}` with type {kind}")
    e.klass = "integer"
    value = _comparison(e, kind)
    one = "f32(1)" if out == "f32" else e.const(np.uint32(0xFFFFFFFF) if out != "s32" else np.int32(-1))
    zero = "f32(0)" if out == "f32" else e.const(np.uint32(0) if out != "s32" else np.int32(0))
    e.put(0, out, f"np.where({value},{one},{zero})")


@opcode("selp")
def selp(e: Emit) -> None:
    """9.7.6.3 selp: c ? a : b."""
    kind = e.type()
    e.klass = "integer"
    e.put(0, kind, f"np.where({e.s(e.ops[3], 'pred')},{e.s(e.ops[1], kind)},{e.s(e.ops[2], kind)})")


@opcode("slct")
def slct(e: Emit) -> None:
    """9.7.6.4 slct: c ≥ 0 ? a : b."""
    kind, test = e.types()
    e.klass = "integer"
    chosen = f"flush({e.s(e.ops[3], test)})" if e.has("ftz") else e.s(e.ops[3], test)
    e.put(0, kind, f"np.where({chosen}>=0,{e.s(e.ops[1], kind)},{e.s(e.ops[2], kind)})")


@runtime
def compare_floats(a: Any, b: Any, compare: str) -> Array:
    """Ordered ``ne`` (false for NaN) and the unordered comparisons (true for NaN)."""
    unordered = np.isnan(a) | np.isnan(b)
    if compare == "nan":
        return np.asarray(unordered)
    if compare == "num":
        return np.asarray(~unordered)
    if compare == "ne":
        return np.asarray((a != b) & ~unordered)
    tests = {"equ": np.equal, "neu": np.not_equal, "ltu": np.less, "leu": np.less_equal, "gtu": np.greater,
             "geu": np.greater_equal}  # fmt: skip
    return np.asarray(tests[compare](a, b) | unordered)

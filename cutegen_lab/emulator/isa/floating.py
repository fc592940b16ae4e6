"""Single and double precision arithmetic and approximations (PTX ISA 9.7.3)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.isa import approximate, half
from cutegen_lab.emulator.ptx import rounding
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.translate.emit import Emit, opcode

_BINARY = {"add": "add", "sub": "subtract", "mul": "multiply"}


# SASS instructions that ptxas 12.9 emits for sm_90a besides the one on the special-function unit, by (opcode, rounding
# and .ftz). IEEE-rounded forms test for special operands (div by FCHK, also on the special-function unit) and branch
# around a subroutine for them; without .ftz subnormals are scaled.
_BESIDE: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("div", "rn"): {"special": 1, "f32": 5, "control": 3}, ("div", "full"): {"f32": 7}, ("div", "full.ftz"): {"f32": 4},
    ("div", "approx"): {"f32": 4}, ("div", "approx.ftz"): {"f32": 1},
    ("rcp", "rn"): {"f32": 3, "integer": 3, "control": 3}, ("rcp", "approx"): {"f32": 6},
    ("sqrt", "rn"): {"f32": 4, "integer": 2, "control": 3}, ("sqrt", "approx"): {"f32": 3},
    ("rsqrt", "approx"): {"f32": 3}, ("ex2", "approx"): {"f32": 3}, ("lg2", "approx"): {"f32": 3},
    **{(opcode, mode): {"f32": 1} for opcode in ("sin", "cos") for mode in ("approx", "approx.ftz")},
}  # fmt: skip


def _beside(e: Emit, kind: str, mode: str, ftz: bool) -> Mapping[str, int]:
    if kind != "f32":
        return {}
    return _BESIDE.get((e.ins.opcode, f"{mode}.ftz" if ftz and mode != "rn" else mode), {})


def _sources(e: Emit, kind: str, ftz: bool, count: int) -> list[str]:
    found = [e.s(o, kind) for o in e.ops[1 : 1 + count]]
    return [f"flush({s})" for s in found] if ftz else found


def _finish(e: Emit, kind: str, ftz: bool, sat: bool) -> None:
    d = e.d(e.ops[0], kind)
    if ftz:
        e.line(f"flush_out({d})")
    if sat:
        e.line(f"{d}[:]=saturate({d})")


def arithmetic(e: Emit, kind: str) -> None:
    """9.7.3.3 add, 9.7.3.4 sub, 9.7.3.5 mul."""
    e.klass = kind
    ftz, sat, mode = e.has("ftz"), e.has("sat"), e.one_of("rn", "rz", "rm", "rp", default="rn")
    a, b = _sources(e, kind, ftz, 2)
    function = _BINARY[e.ins.opcode]
    if mode == "rn":
        e.line(f"np.{function}({a},{b},out={e.d(e.ops[0], kind)})")
    elif kind == "f32":
        e.put(0, kind, f"exact_{function}({a},{b},{mode!r})")
    else:
        raise e.refuse(f"the emulator does not support rounding .{mode} of `{e.ins.name}`")
    _finish(e, kind, ftz, sat)


@opcode("fma")
def fma(e: Emit) -> None:
    """9.7.3.6 fma; half forms 9.7.4.4."""
    kind = e.type()
    fused(e, kind) if kind in ("f32", "f64") else half.fused(e, kind)


def fused(e: Emit, kind: str) -> None:
    """a·b + c rounded once."""
    e.klass = kind
    ftz, sat, mode = e.has("ftz"), e.has("sat"), e.one_of("rn", "rz", "rm", "rp", default="rn")
    a, b, c = _sources(e, kind, ftz, 3)
    if kind == "f64":
        if mode != "rn":
            raise e.refuse(f"the emulator does not support rounding .{mode} of `{e.ins.name}`")
        e.put(0, kind, f"fma_f64({a},{b},{c})")
    else:
        e.line(f"w=np.multiply({a},{b},dtype=f64)")
        e.put(0, kind, f"fused_sum(w,{c})" if mode == "rn" else f"to_float(sum_to_odd(w,{c}),f32,{mode!r})")
    _finish(e, kind, ftz, sat)


def extreme(e: Emit, kind: str) -> None:
    """9.7.3.11 min, 9.7.3.12 max: without .NaN a NaN operand is ignored; also .xorsign.abs, and three operands."""
    e.klass = kind
    ftz, nan, signs = e.has("ftz"), e.has("NaN"), e.has("xorsign")
    if signs:
        e.has("abs")
    sources = _sources(e, kind, ftz, len(e.ops) - 1)
    function = f"np.{e.ins.opcode}imum" if nan else f"np.f{e.ins.opcode}"
    if signs:
        a, b = sources
        flip = f"np.where(np.signbit({a})^np.signbit({b}),f32(-1),f32(1))"
        e.put(0, kind, f"np.copysign({function}(np.abs({a}),np.abs({b})),{flip})")
        return
    expression = f"{function}({sources[0]},{sources[1]}"
    if len(sources) == 3:
        expression = f"{function}({expression}),{sources[2]}"
    e.line(f"{expression},out={e.d(e.ops[0], kind)})")


def sign(e: Emit, kind: str) -> None:
    """9.7.3.9 abs, 9.7.3.10 neg."""
    e.klass = kind
    ftz = e.has("ftz")
    (a,) = _sources(e, kind, ftz, 1)
    e.line(f"np.{'absolute' if e.ins.opcode == 'abs' else 'negative'}({a},out={e.d(e.ops[0], kind)})")


def divide(e: Emit, kind: str) -> None:
    """9.7.3.8 div."""
    if kind not in ("f32", "f64") or e.ins.opcode != "div":
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    e.klass = "special"
    ftz, mode = e.has("ftz"), e.one_of("approx", "full", "rn", "rz", "rm", "rp", default="rn")
    e.beside = _beside(e, kind, mode, ftz)
    a, b = _sources(e, kind, ftz, 2)
    if mode in ("rz", "rm", "rp"):
        raise e.refuse(f"the emulator does not support rounding .{mode} of `{e.ins.name}`")
    if kind == "f32" and mode in ("approx", "full"):
        e.line(f"divide_approx({a},{b},{e.d(e.ops[0], kind)},{mode == 'full'})")
    else:
        e.line(f"np.divide({a},{b},out={e.d(e.ops[0], kind)})")
    _finish(e, kind, ftz, False)


_UNARY = {
    "rcp": "np.divide(f32(1),{a},out={d})", "sqrt": "np.sqrt({a},out={d})", "lg2": "np.log2({a},out={d})",
    "ex2": "np.exp2({a},out={d})", "sin": "np.sin({a},out={d})", "cos": "np.cos({a},out={d})",
    "tanh": "np.tanh({a},out={d})",
}  # fmt: skip


assert approximate.__doc__, "importing it registers functions that generated code calls"


@opcode("rcp", "sqrt", "lg2", "ex2", "sin", "cos", "tanh")
def unary(e: Emit) -> None:
    """9.7.3.13 rcp, .15 sqrt, .18 sin, .19 cos, .20 lg2, .21 ex2, .22 tanh; half ex2 and tanh 9.7.4.10, 9.7.4.9."""
    kind = e.type()
    e.klass = "special"
    mode, ftz = e.one_of("approx", "rn", "rz", "rm", "rp", default="rn"), e.has("ftz")
    e.beside = _beside(e, kind, mode, ftz)
    if mode in ("rz", "rm", "rp"):
        raise e.refuse(f"the emulator does not support rounding .{mode} of `{e.ins.name}`")
    if kind not in ("f32", "f64"):
        half.unary(e, kind, _UNARY[e.ins.opcode].partition("(")[0])
        return
    (a,) = _sources(e, kind, ftz and e.ins.opcode != "ex2", 1)  # 2 to the power of a subnormal is 1 either way
    d = e.d(e.ops[0], kind)
    if mode == "approx" and kind == "f32":
        e.line(f"{e.ins.opcode}_approx({a},{d})")
    else:
        e.line(_UNARY[e.ins.opcode].replace("f32", kind).format(a=a, d=d))
        if mode == "approx":
            e.line(f"gross_f64({d})")
    _finish(e, kind, ftz, False)


@opcode("rsqrt")
def rsqrt(e: Emit) -> None:
    """9.7.3.16 rsqrt.approx."""
    kind, _, ftz = e.type("f32", "f64"), e.has("approx"), e.has("ftz")
    e.klass, e.beside = "special", _beside(e, kind, "approx", ftz)
    (a,) = _sources(e, kind, ftz, 1)
    d = e.d(e.ops[0], kind)
    if kind == "f32":
        e.line(f"rsqrt_approx({a},{d})")
    else:
        e.line(f"{d}[:]=np.divide(1.0,np.sqrt({a}))")
        e.line(f"gross_f64({d})")
    _finish(e, kind, ftz, False)


@opcode("copysign")
def copysign(e: Emit) -> None:
    """9.7.3.2 copysign: the magnitude of b with the sign of a."""
    kind = e.type("f32", "f64")
    e.klass = kind
    e.line(f"np.copysign({e.s(e.ops[2], kind)},{e.s(e.ops[1], kind)},out={e.d(e.ops[0], kind)})")


@opcode("testp")
def testp(e: Emit) -> None:
    """9.7.3.1 testp; zeros count as normal."""
    kind = e.type("f32", "f64")
    test = e.one_of("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    e.klass = kind
    a = e.s(e.ops[1], kind)
    tiny = "f32(2.0**-126)" if kind == "f32" else "f64(2.0**-1022)"
    forms = {
        "finite": f"np.isfinite({a})", "infinite": f"np.isinf({a})", "number": f"~np.isnan({a})",
        "notanumber": f"np.isnan({a})", "normal": f"np.isfinite({a})&(({a}==0)|(np.abs({a})>={tiny}))",
        "subnormal": f"({a}!=0)&(np.abs({a})<{tiny})",
    }  # fmt: skip
    e.put(0, "pred", forms[test])


# Mantissa bits of float64 that float32 lacks, and their value at a tie.
_BELOW_F32, _HALF_OF_F32 = np.uint64(0x1FFFFFFF), np.uint64(0x10000000)
_NORMAL = 2.0**-126


@runtime
def fused_sum(product: Array, addend: Array) -> Array:
    """float64 ``product`` + float32 ``addend``, which the caller rounds to float32. In runs as accurate as hardware the
    sum is rounded to odd near a tie, so that it is rounded correctly."""
    total = np.add(product, addend)
    if not approximate.is_near():
        return total
    size = np.abs(total)
    may_tie = (total.view(np.uint64) & _BELOW_F32 == _HALF_OF_F32) | ((size < _NORMAL) & (size > 0))  # a zero is exact
    if not may_tie.any():
        return total
    return np.where(may_tie, rounding.sum_to_odd(product, np.asarray(addend, np.float64)), total)


def _wide(values: Array) -> Array:
    return np.atleast_1d(values).astype(np.float64)


@runtime
def exact_add(a: Array, b: Array, mode: str) -> Array:
    return rounding.to_float(rounding.sum_to_odd(_wide(a), _wide(b)), np.float32, mode)


@runtime
def exact_subtract(a: Array, b: Array, mode: str) -> Array:
    return exact_add(a, np.negative(b), mode)


@runtime
def exact_multiply(a: Array, b: Array, mode: str) -> Array:
    return rounding.to_float(np.multiply(_wide(a), _wide(b)), np.float32, mode)


@runtime
def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """a·b + c with the product's rounding error added back (Dekker 1971): one rounding except at ties and overflow."""
    a, b, c = (np.asarray(x, np.float64) for x in (a, b, c))
    product = a * b
    split = 134217729.0
    ah = a * split - (a * split - a)
    bh = b * split - (b * split - b)
    error = ((ah * bh - product) + ah * (b - bh) + (a - ah) * bh) + (a - ah) * (b - bh)
    total = product + c
    shifted = total - product
    tail = (product - (total - shifted)) + (c - shifted)
    exact = total + (tail + error)
    return np.asarray(np.where(np.isfinite(exact), exact, total))

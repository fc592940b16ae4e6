"""Conversions between number formats (PTX ISA 9.7.9.21 cvt, 9.7.9.22 cvt.pack)."""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.isa import convert_fp8
from cutegen_lab.emulator.ptx import rounding
from cutegen_lab.emulator.ptx.types import INTEGER_TYPES, WIDTH, Array
from cutegen_lab.emulator.translate.emit import Emit, opcode

_FLOATS = ("f16", "bf16", "f32", "f64")
_INTEGER_ROUNDING = ("rni", "rzi", "rmi", "rpi")
_ROUNDING = ("rn", "rz", "rm", "rp")


@opcode("cvt")
def cvt(e: Emit) -> None:
    """9.7.9.21 cvt."""
    kinds = e.types()
    if len(kinds) != 2:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    out, source = kinds
    if out in convert_fp8.EIGHT or source in convert_fp8.EIGHT:
        convert_fp8.convert(e, out, source)
        return
    ftz, sat, relu = e.has("ftz"), e.has("sat"), e.has("relu")
    whole, mode = e.one_of(*_INTEGER_ROUNDING), e.one_of(*_ROUNDING)
    e.klass = _unit(out, source, whole)
    if out.endswith("x2"):
        _pack(e, out, source, mode or "rn", relu)
    elif (out, source) == ("tf32", "f32") and (e.has("rna") or mode == "rn") and not (relu or "satfinite" in e.mods):
        e.put(0, "b32", f"to_tf32({e.s(e.ops[1], 'f32')},{mode != 'rn'})")
    elif out == "tf32" or source == "tf32":
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    elif out in INTEGER_TYPES and source in INTEGER_TYPES:
        _integers(e, out, source, sat)
    elif source in INTEGER_TYPES:
        _from_integer(e, out, source, mode or "rn")
    elif out in INTEGER_TYPES:
        _to_integer(e, out, source, whole or "rzi", ftz)
    elif out in _FLOATS and source in _FLOATS:
        _floats(e, out, source, mode, whole, ftz, sat, relu)
    else:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")


def _unit(out: str, source: str, whole: str) -> str:
    """Class of the SASS instruction that ptxas 12.9 emits for sm_90a: F2I, I2F, FRND and F2F of f64 run on the
    special-function unit ("xu" in the Nsight Compute profiling guide); f16 → f32 is HADD2, f32 with .sat is FADD; I2FP,
    F2FP and shifts run on the integer units."""
    if source in INTEGER_TYPES:
        special = out not in INTEGER_TYPES and not (out == "f32" and source in ("s32", "u32"))
    else:
        special = out in INTEGER_TYPES or bool(whole) or (out != source and "f64" in (out, source))
    if special:
        return "special"
    return {("f32", "f16"): "half", ("f32", "f32"): "f32"}.get((out, source), "convert")


def _pack(e: Emit, out: str, source: str, mode: str, relu: bool) -> None:
    if source != "f32" or len(e.ops) != 3:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")
    high, low = e.s(e.ops[1], "f32"), e.s(e.ops[2], "f32")
    if e.has("satfinite"):
        high, low = (f"finite({x},{out[:-2]!r})" for x in (high, low))
    if out == "bf16x2" and mode == "rn" and not relu and high[0] == low[0] == "F":
        e.line(f"pack_bf16({e.s(e.ops[1], 'b32')},{e.s(e.ops[2], 'b32')},{e.d(e.ops[0], 'b32')})")
        return
    if relu:
        high, low = (f"np.where({x}<0,f32(0),{x})" for x in (high, low))
    e.line(f"w={e.d(e.ops[0], 'b32')}.view(u16)")
    narrow = "to_bf16({},{!r})" if out == "bf16x2" else "to_f16_bits({},{!r})"
    e.line(f"x={narrow.format(high, mode)};y={narrow.format(low, mode)}")
    e.line("w[1::2]=x;w[0::2]=y")


def _integer_source(e: Emit, source: str) -> str:
    if source not in ("u8", "s8"):
        return e.s(e.ops[1], source)
    signed = source == "s8"
    return f"np.asarray({e.s(e.ops[1], 'b16')}).astype({'i8' if signed else 'u8'})"


def _integers(e: Emit, out: str, source: str, sat: bool) -> None:
    value = _integer_source(e, source)
    kind = ("u" if out[0] == "u" else "i") + out[1:]
    value = f"clamp_integer({value},np.{_name(out)})" if sat else f"np.asarray({value}).astype({kind})"
    target, _ = e.d_wide(e.ops[0], out)
    e.line(f"{target}[:]={value}")


def _name(kind: str) -> str:
    return ("uint" if kind[0] == "u" else "int") + kind[1:]


def _from_integer(e: Emit, out: str, source: str, mode: str) -> None:
    value = _integer_source(e, source)
    if out == "bf16":
        e.put(0, "b16", f"integer_to_bf16({value},{mode!r})")
    else:
        e.put(0, out, f"to_float({value},{out},{mode!r})")


def _float_source(e: Emit, source: str) -> str:
    return f"bf16_to_f32({e.s(e.ops[1], 'b16')})" if source == "bf16" else e.s(e.ops[1], source)


def _to_integer(e: Emit, out: str, source: str, whole: str, ftz: bool) -> None:
    value = _float_source(e, source)
    if ftz and source == "f32":
        value = f"flush({value})"
    target, _ = e.d_wide(e.ops[0], out)
    e.line(f"{target}[:]=to_integer({value},np.{_name(out)},{whole!r})")


def _floats(e: Emit, out: str, source: str, mode: str, whole: str, ftz: bool, sat: bool, relu: bool) -> None:
    if source == "bf16" and out == "f32" and not (sat or relu or ftz or whole):
        bits = e.d(e.ops[0], "b32")
        e.line(f"{bits}[:]={e.s(e.ops[1], 'b16')}")
        e.line(f"np.left_shift({bits},u32(16),out={bits})")
        return
    value = _float_source(e, source)
    if ftz and source == "f32":
        value = f"flush({value})"
    if whole:
        function = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[whole]
        value = f"np.{function}({value})"
    if sat:
        value = f"saturate({value})"
    if relu:
        value = f"np.where({value}<0,0,{value}).astype(f32)"
    if out in ("f16", "bf16") and source == "f32" and e.has("satfinite"):
        value = f"finite({value},{out!r})"
    narrower = WIDTH[out] < WIDTH[source] or (out, source) in (("f16", "bf16"), ("bf16", "f16"))
    rounding = mode or "rn"
    if out == "bf16":
        e.put(0, "b16", f"to_bf16(np.asarray({value},f32 if {source!r}!='f64' else f64),{rounding!r})")
    elif out == "f16":
        e.put(0, "b16", f"to_f16_bits({value},{rounding!r})")
    else:
        e.put(0, out, f"to_float({value},{out},{rounding!r})" if narrower else value)
        if ftz and out == "f32":
            e.line(f"flush_out({e.d(e.ops[0], 'f32')})")


@runtime
def finite(value: Array, kind: str) -> Array:
    """``.satfinite``: overflow becomes the format's largest finite value; NaN stays."""
    most = np.float32(65504.0) if kind == "f16" else np.uint32(0x7F7F0000).view(np.float32)
    return np.clip(value, -most, most)


@runtime
def to_f16_bits(value: Array, mode: str = "rn") -> Array:
    """Any wider float → f16 bits; NaN becomes 0x7FFF."""
    rounded = rounding.to_float(value, np.float16, mode)
    return np.asarray(np.where(np.isnan(rounded), np.uint16(0x7FFF), rounded.view(np.uint16)))


@runtime
def to_tf32(value: Array, away: bool) -> Array:
    """f32 → tf32 in an f32's bits: 10 bits of mantissa, to nearest; ties ``away`` from zero or to even."""
    bits = np.atleast_1d(value).view(np.uint32)
    half = np.uint32(0x1000) if away else np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    rounded = (bits + half) & np.uint32(0xFFFFE000)
    infinite = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
    special = np.where(np.isnan(np.atleast_1d(value)), np.uint32(0x7FFFFFFF), bits)
    return np.asarray(np.where(infinite, special, rounded))


@runtime
def integer_to_bf16(value: Array, mode: str) -> Array:
    """Integer → bfloat16 bits. 64-bit integers are first rounded to odd in float64, to avoid double rounding."""
    value = np.atleast_1d(value)
    wide = value.astype(np.float64)
    if value.dtype.itemsize == 8:
        exact = value.astype(np.longdouble)
        wrong = (wide.astype(np.longdouble) != exact) & ((wide.view(np.uint64) & 1) == 0)
        toward = np.where(wide.astype(np.longdouble) < exact, np.inf, -np.inf)
        wide = np.where(wrong, np.nextafter(wide, toward), wide)
    return rounding.to_bf16(wide, mode)

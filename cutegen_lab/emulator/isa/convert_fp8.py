"""Conversions to and from pairs of eight-bit floats (PTX ISA 9.7.9.21 cvt, .e4m3x2 and .e5m2x2)."""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx.formats import to_eight, to_f32
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.translate.emit import Emit

EIGHT = ("e4m3x2", "e5m2x2")


def convert(e: Emit, out: str, source: str) -> None:
    """9.7.9.21 cvt.rn.satfinite[.relu].fp8x2 of two f32 or an f16x2; cvt.rn[.relu].f16x2 of fp8x2."""
    e.klass = "convert"
    nearest, saturates, relu = e.has("rn"), e.has("satfinite"), e.has("relu")
    if out in EIGHT and source == "f32" and nearest and saturates and len(e.ops) == 3:
        values = f"np.stack(np.broadcast_arrays({e.s(e.ops[2], 'f32')},{e.s(e.ops[1], 'f32')}),axis=-1)"
        e.put(0, "b16", f"pack_eight({values},{out[:-2]!r},{relu})")
    elif out in EIGHT and source == "f16x2" and nearest and saturates:
        values = f"np.atleast_1d({e.s(e.ops[1], 'b32')}).view(f16).reshape(-1,2)"
        e.put(0, "b16", f"pack_eight({values},{out[:-2]!r},{relu})")
    elif source in EIGHT and out == "f16x2" and nearest and not saturates:
        e.put(0, "b32", f"unpack_eight({e.s(e.ops[1], 'b16')},{source[:-2]!r},{relu})")
    else:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}`")


@runtime
def pack_eight(values: Array, kind: str, relu: bool) -> Array:
    """Values [lanes, (low, high)] → packed codes (16 bits per lane)."""
    if relu:
        values = np.where(values <= 0, values.dtype.type(0), values)
    return to_eight(values, kind).view(np.uint16).ravel()


@runtime
def unpack_eight(codes: Array, kind: str, relu: bool) -> Array:
    """Codes → f16, exactly; NaN becomes 0x7FFF."""
    values = to_f32(np.atleast_1d(codes).reshape(-1, 1), kind)
    if relu:
        values = np.where(values <= 0, np.float32(0), values)
    halves = values.astype(np.float16)
    halves[np.isnan(values)] = np.uint16(0x7FFF).view(np.float16)
    return halves.view(np.uint32).ravel()

"""Half precision arithmetic: f16, bf16 and their packed pairs (PTX ISA 9.7.4).

Every operation is done in float64 or float32, exactly or with harmless double rounding, and rounded to the format.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx import rounding
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.translate.emit import Emit

HALVES = ("f16", "bf16", "f16x2", "bf16x2")
_BINARY = {"add": "add", "sub": "subtract", "mul": "multiply"}


def _wide(e: Emit, index: int, kind: str) -> str:
    return f"half_in({e.s(e.ops[index], 'b32' if kind.endswith('x2') else 'b16')},{kind!r})"


def _out(e: Emit, kind: str, expression: str) -> None:
    e.klass = "half"
    ftz, sat, relu = e.has("ftz"), e.has("sat"), e.has("relu")
    if relu:
        expression = f"half_relu({expression})"
    if sat:
        expression = f"saturate({expression})"
    e.put(0, "b32" if kind.endswith("x2") else "b16", f"half_out({expression},{kind!r},{ftz})")


def _known(e: Emit, kind: str) -> None:
    if kind not in HALVES:
        raise e.refuse(f"the emulator does not execute `{e.ins.name}` with type {kind}")


def arithmetic(e: Emit, kind: str) -> None:
    """9.7.4.1 add, .2 sub, .3 mul."""
    _known(e, kind)
    e.skip("rn")
    _out(e, kind, f"np.{_BINARY[e.ins.opcode]}({_wide(e, 1, kind)},{_wide(e, 2, kind)})")


def fused(e: Emit, kind: str) -> None:
    """9.7.4.4 fma."""
    _known(e, kind)
    e.skip("rn")
    _out(e, kind, f"sum_to_odd({_wide(e, 1, kind)}*{_wide(e, 2, kind)},{_wide(e, 3, kind)})")


def sign(e: Emit, kind: str) -> None:
    """9.7.4.5 neg, .6 abs."""
    _known(e, kind)
    _out(e, kind, f"np.{'absolute' if e.ins.opcode == 'abs' else 'negative'}({_wide(e, 1, kind)})")


def extreme(e: Emit, kind: str) -> None:
    """9.7.4.7 min, .8 max."""
    _known(e, kind)
    function = f"np.{e.ins.opcode}imum" if e.has("NaN") else f"np.f{e.ins.opcode}"
    _out(e, kind, f"{function}({_wide(e, 1, kind)},{_wide(e, 2, kind)})")


def unary(e: Emit, kind: str, function: str) -> None:
    """9.7.4.9 tanh, .10 ex2. The only error is that of rounding to the format: half of what the ISA allows."""
    _known(e, kind)
    _out(e, kind, f"{function}({_wide(e, 1, kind)})")


@runtime
def half_in(raw: Array, kind: str) -> Array:
    """Bits → float64; a packed pair becomes two neighbouring elements."""
    bits = np.atleast_1d(raw)
    if kind.endswith("x2"):
        bits = bits.view(np.uint16)
    if kind.startswith("bf16"):
        return rounding.bf16_to_f32(bits).astype(np.float64)
    return bits.view(np.float16).astype(np.float64)


@runtime
def half_relu(values: Array) -> Array:
    return np.where(values < 0, 0.0, values)


@runtime
def half_out(values: Array, kind: str, ftz: bool = False) -> Array:
    """float64 → bits, to nearest even."""
    if kind.startswith("bf16"):
        bits = rounding.to_bf16(values)
    else:
        rounded = values.astype(np.float16)
        if ftz:
            rounded = np.where(np.abs(rounded) < np.float16(2.0**-14), np.copysign(np.float16(0), rounded), rounded)
        bits = np.where(np.isnan(rounded), np.uint16(0x7FFF), rounded.view(np.uint16))
    bits = np.ascontiguousarray(bits)
    return bits.view(np.uint32) if kind.endswith("x2") else bits

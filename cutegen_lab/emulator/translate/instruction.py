"""Translates one instruction of any opcode to Python lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.generated_globals import runtime
from cutegen_lab.emulator.ptx.types import VIEW
from cutegen_lab.emulator.translate.emit import OPCODES, Emit, Symbols

_TOUCH_MEMORY = {"load", "store", "shared", "atomic", "bulk"}
_CHANGE_NAN = {"add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "rsqrt", "min", "max", "abs", "neg", "ex2",
               "lg2", "sin", "cos", "tanh", "cvt"}  # fmt: skip


def translate(instruction: ptx.Instruction, symbols: Symbols) -> Emit:
    """``instruction`` as Python lines. Raises :class:`Unsupported` with the opcode or modifier that the emulator
    lacks."""
    emit = Emit(instruction, symbols)
    function = OPCODES.get(instruction.opcode)
    if function is None:
        raise emit.refuse(f"the emulator does not execute `{instruction.name}`")
    try:
        function(emit)
    except (IndexError, KeyError) as error:
        raise emit.refuse(f"the emulator does not execute `{instruction.name}` with these forms of operands") from error
    _one_nan(emit)
    if emit.mods:
        raise emit.refuse(f"the emulator does not support modifier .{emit.mods[0]} of `{instruction.name}`")
    if emit.klass in _TOUCH_MEMORY and emit.lines:
        emit.site, symbols.sites = symbols.sites, symbols.sites + 1
        emit.lines.insert(0, f"g.ctas.counters.here=g.ctas.counters.sites[{emit.site}]")
    emit.reads = dict(emit.uses)
    if instruction.guard is not None:
        if emit.parks:
            raise emit.refuse(f"the emulator does not execute `{instruction.name}` under a guard")
        emit.uses.update(emit.defs)  # lanes that are guarded off keep their old values
    return emit


def _one_nan(emit: Emit) -> None:
    """NaN results of float32 arithmetic become 0x7FFFFFFF (PTX ISA 9.7.3), as on an H200. Not in conversions from bf16,
    which only shift bits."""
    instruction, first = emit.ins, emit.ops[0] if emit.ops else None
    kinds = [mod for mod in instruction.mods if mod in VIEW]
    gives_float = instruction.opcode in _CHANGE_NAN and kinds[:1] == ["f32"] and kinds[1:] != ["bf16"]
    if gives_float and isinstance(first, ptx.Reg) and first.name in emit.defs:
        emit.line(f"one_nan(F[<{first.name}>])")


@runtime
def one_nan(values: Any) -> None:
    if np.isnan(np.maximum.reduce(values)):
        values.view(np.uint32)[np.isnan(values)] = 0x7FFFFFFF

"""Loads with ``.pragma "used_bytes_mask"``, which marks bytes of the result as unused (PTX ISA 9.0, 11.4).

Hardware may not load unused bytes, so nothing may depend on them: the emulator sets all their bits after the load, so
that a number which is used nevertheless is NaN. They may be out of bounds: ptxas reads the last three numbers of an
array by a load of four.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Unsupported
from cutegen_lab.emulator.ptx.types import WIDTH

USED = "used_bytes::"  # internal modifier of loads, followed by the mask of used bytes
_BITS = {"H": 16, "U": 32, "D": 64}  # bits of a register, by file


def masked(load: ptx.Instruction, mask: int) -> Iterator[ptx.Instruction]:
    """The instructions that replace ``load``, of which only the bytes in ``mask`` are used. Raises
    :class:`Unsupported` if it is not a load."""
    kind = load.mods[-1] if load.mods else ""
    if load.opcode != "ld" or kind not in WIDTH:
        raise Unsupported("used_bytes_mask applies to loads only", load.line, load.text)
    yield replace(load, mods=(f"{USED}{mask}", *load.mods))
    target, size = load.operands[0], WIDTH[kind]
    for i, item in enumerate(target.items if isinstance(target, ptx.Vector) else (target,)):
        unused = ~(mask >> i * size) & (1 << size) - 1
        bits = sum(0xFF << 8 * byte for byte in range(size) if unused >> byte & 1)
        if bits and isinstance(item, ptx.Reg):
            operands = (item, item, ptx.Imm(bits))
            yield ptx.Instruction(
                "or", (f"b{_BITS[item.file]}",), operands, load.guard, load.negated, load.text, load.line
            )

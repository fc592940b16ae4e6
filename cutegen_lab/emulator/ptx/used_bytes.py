"""Loads of which ``.pragma "used_bytes_mask"`` says that some bytes are not used (PTX ISA 9.0, 11.4).

Hardware may leave those bytes unread, so that nothing may depend on them: here all their bits are set after the load,
which makes a NaN of a number that is used all the same. Nor need they lie in the memory that is read: ptxas itself
reads the last three numbers of an array by a load of four.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Unsupported
from cutegen_lab.emulator.ptx.types import WIDTH

USED = "used_bytes::"  # a modifier of loads that PTX does not have: which bytes are, as a mask
_BITS = {"H": 16, "U": 32, "D": 64}  # of a register file


def masked(load: ptx.Instruction, mask: int) -> Iterator[ptx.Instruction]:
    """What to execute for ``load``. Raises :class:`Unsupported` where the pragma stands before anything else."""
    kind = load.mods[-1] if load.mods else ""
    if load.opcode != "ld" or kind not in WIDTH:
        raise Unsupported("used_bytes_mask is read before a load only", load.line, load.text)
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

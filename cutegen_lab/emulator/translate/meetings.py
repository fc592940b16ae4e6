"""Where threads must meet before an instruction that takes them together, as they may come at different times.

An instruction of a whole warp (shfl.sync, bar.sync, mma and others, PTX ISA 9.7.9.6, 9.7.13.1, 9.7.14.5) waits for the
lanes of its member mask, or has all lanes of the warp execute it: one of them may have waited for an mbarrier
meanwhile. A wgmma takes the four warps of a warpgroup. At wgmma.fence they meet anyway (:mod:`wgmma`); a kernel that
fences once for many products may let one warp do other work between two of them (9.7.15.7.1: sums need no second
fence). So each of these gets a meeting where nothing before it in straight code has brought its threads together.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.ptx.traits import names_every_lane
from cutegen_lab.emulator.translate.emit import Emit

_MASKED = {"shfl", "vote", "match", "redux", "elect"}  # whose last operand is the member mask


def meetings(code: Sequence[ptx.Instruction], breaks: Container[int]) -> set[int]:
    """Numbers of the instructions that need one. ``breaks``: those that threads may come to apart."""
    found, warps, warpgroups = set(), False, False
    for i, instruction in enumerate(code):
        if i in breaks:
            warps = warpgroups = False
        if instruction.guard is not None:
            continue
        if instruction.opcode == "wgmma":
            if "mma_async" in instruction.mods:
                if not warpgroups:
                    found.add(i)
                warpgroups = True
            elif "fence" in instruction.mods:
                warpgroups = True
            continue
        if not _takes_a_warp(instruction):
            continue
        if not warps:
            found.add(i)
        warps = warps or _members(instruction) is None
    return found


def meeting(emit: Emit) -> Emit:
    """What stands before ``emit``. It is no instruction of its own, and is not counted."""
    made = Emit(emit.ins, emit.symbols)
    made.parks, made.klass = True, ""
    if emit.ins.opcode == "wgmma":
        made.line("return g.m.products.meet(g)")
        return made
    members = _members(emit.ins)
    made.meets = _name(emit.ins)
    made.line(f"return lanes_meet(g,{None if members is None else made.s(members, 'u32')})")
    return made


def _name(instruction: ptx.Instruction) -> str:
    """What it is in messages."""
    if instruction.opcode in ("bar", "barrier"):
        return "a cluster barrier" if "cluster" in instruction.mods else "a barrier"
    return "a warp-wide instruction" if instruction.opcode in _MASKED else f"{instruction.opcode}"


def _takes_a_warp(instruction: ptx.Instruction) -> bool:
    if instruction.opcode in _MASKED:
        return "sync" in instruction.mods
    if instruction.opcode == "bar":
        return "warp" not in instruction.mods  # which waits by itself
    return "aligned" in instruction.mods


def _members(instruction: ptx.Instruction) -> ptx.Operand | None:
    """The member mask; None where every lane takes part."""
    mask = instruction.operands[-1] if instruction.opcode in _MASKED else None
    return None if mask is None or names_every_lane(mask) else mask

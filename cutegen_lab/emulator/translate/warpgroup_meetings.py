"""Where the warps of a warpgroup must meet before a wgmma: it takes all four, and they may come at different times.

At wgmma.fence they meet anyway (:mod:`wgmma`). A kernel that fences once for many products may let one warp do other
work between two of them (PTX ISA 9.7.15.7.1: sums need no second fence), so every wgmma that no fence or other wgmma
stands before in straight code gets a meeting of its own.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.translate.emit import Emit


def meetings(code: Sequence[ptx.Instruction], breaks: Container[int]) -> set[int]:
    """Numbers of the wgmma that need one. ``breaks``: instructions that warps may come to apart."""
    found, together = set(), False
    for i, instruction in enumerate(code):
        together = together and i not in breaks
        if instruction.opcode != "wgmma" or instruction.guard is not None:
            continue
        if "mma_async" in instruction.mods:
            if not together:
                found.add(i)
            together = True
        elif "fence" in instruction.mods:
            together = True
    return found


def meeting(emit: Emit) -> Emit:
    """What stands before ``emit``. It is no instruction of its own, and is not counted."""
    made = Emit(emit.ins, emit.symbols)
    made.parks, made.klass = True, ""
    made.line("return g.m.products.meet(g)")
    return made

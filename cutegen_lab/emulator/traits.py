"""What can be told of a kernel from its instructions alone."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.types import WIDTH

_MEMORY = ("ld", "ldu", "st", "atom", "red")
_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}


def is_strong(instruction: ptx.Instruction) -> bool:
    """Strong operations on one place do not race with each other (PTX ISA 8.3 "Memory Operations", 8.7.1 "Races")."""
    return instruction.opcode in ("atom", "red") or not _STRONG.isdisjoint(instruction.mods)


def fences(code: Sequence[ptx.Instruction]) -> bool:
    """Can strong operations order others around them (PTX ISA 8.9.5 "Release and Acquire Patterns")?"""
    return any(_is_fence(i) or (is_strong(i) and _ORDERS & set(i.mods)) for i in code)


_ORDERS = {"acquire", "release", "acq_rel"}


def _is_fence(instruction: ptx.Instruction) -> bool:
    apart = {"proxy", "mbarrier_init"}
    return instruction.opcode in ("membar", "fence") and apart.isdisjoint(instruction.mods)


def blocks_may_wait(code: Sequence[ptx.Instruction]) -> bool:
    """Can blocks of different clusters order what they do? Only strong operations on global memory, or fences."""
    return any(_is_fence(i) or (is_strong(i) and not _is_shared(i)) for i in code)


def _is_shared(instruction: ptx.Instruction) -> bool:
    return any(m.startswith("shared") for m in instruction.mods)


def access_unit(code: Sequence[ptx.Instruction]) -> int:
    """Bytes of the narrowest memory access."""
    widths = [WIDTH[m] for i in code if i.opcode in _MEMORY for m in i.mods if m in WIDTH]
    return min([4, *widths])

"""Traits of a kernel that follow from its instructions alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.ptx.types import WIDTH

_MEMORY = ("ld", "ldu", "st", "atom", "red")
_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}


def is_strong(instruction: ptx.Instruction) -> bool:
    """True for strong operations: at one location they do not race with each other (PTX ISA 8.3 "Memory Operations",
    8.7.1 "Races"). A cp.reduce.async.bulk is relaxed at the GPU's scope (9.7.9.25.4.2)."""
    if instruction.opcode == "cp":
        return "reduce" in instruction.mods
    return instruction.opcode in ("atom", "red") or not _STRONG.isdisjoint(instruction.mods)


CTA, CLUSTER, GRID = range(3)
"""Scopes (PTX ISA 8.5), smallest first; .gpu and .sys count as the grid."""


class Ordering(NamedTuple):
    """What a strong operation or a fence orders."""

    strong: bool
    reads: bool
    acquires: bool
    releases: bool
    scope: int


WEAK = Ordering(strong=False, reads=True, acquires=False, releases=False, scope=CTA)


@lru_cache(4096)
def ordering(instruction: ptx.Instruction) -> Ordering:
    """Ordering of a memory instruction or a fence. Atomic operations that name no scope have the scope of the GPU."""
    mods, fence = set(instruction.mods), is_fence(instruction)
    both = "acq_rel" in mods or (fence and not mods & {"acquire", "release"})
    scope = CTA if "cta" in mods else CLUSTER if "cluster" in mods else GRID
    strong, reads = fence or is_strong(instruction), instruction.opcode not in ("st", "red")
    acquires, releases = strong and (both or "acquire" in mods), strong and (both or "release" in mods)
    return Ordering(strong, reads, acquires, releases, scope)


def fences(code: Sequence[ptx.Instruction]) -> bool:
    """True if strong operations may order others around them (PTX ISA 8.9.5 "Release and Acquire Patterns")."""
    return any(o.acquires or o.releases for o in map(ordering, filter(_may_order, code)))


def _may_order(instruction: ptx.Instruction) -> bool:
    return is_fence(instruction) or instruction.opcode in _MEMORY


def is_fence(instruction: ptx.Instruction) -> bool:
    apart = {"proxy", "mbarrier_init"}
    return instruction.opcode in ("membar", "fence") and apart.isdisjoint(instruction.mods)


def proxies(instruction: ptx.Instruction) -> tuple[bool, bool] | None:
    """(fences shared memory, fences global memory) of an async proxy fence (PTX ISA 9.7.13.4); None for others."""
    mods = instruction.mods
    if instruction.opcode != "fence" or "proxy" not in mods or not any(m.startswith("async") for m in mods):
        return None
    shared = any("shared" in m for m in mods)
    return shared or "global" not in mods, not shared


def blocks_may_wait(code: Sequence[ptx.Instruction]) -> bool:
    """True if blocks of different clusters may synchronise: by fences, acquire and release at the GPU's scope."""
    found = (ordering(i) for i in code if _may_order(i) and not _is_shared(i))
    return any(o.scope == GRID and (o.acquires or o.releases) for o in found)


def names_every_lane(mask: ptx.Operand) -> bool:
    """Whether a member mask is known to name all 32 lanes."""
    return isinstance(mask, ptx.Imm) and mask.value & 0xFFFF_FFFF == 0xFFFF_FFFF


def asks_memory(instruction: ptx.Instruction) -> bool:
    """True for strong loads and atomics, which see writes of other running threads."""
    return instruction.opcode in ("ld", "atom") and is_strong(instruction)


def blocks_may_meet(code: Sequence[ptx.Instruction]) -> bool:
    """True if a block may wait for others, which needs strong reads of global memory."""
    return any(asks_memory(i) and not _is_shared(i) for i in code)


def _is_shared(instruction: ptx.Instruction) -> bool:
    return any(m.startswith("shared") for m in instruction.mods)


def access_unit(code: Sequence[ptx.Instruction]) -> int:
    """Bytes of the narrowest memory access."""
    widths = [WIDTH[m] for i in code if i.opcode in _MEMORY for m in i.mods if m in WIDTH]
    return min([4, *widths])


def compares(instruction: ptx.Instruction) -> bool:
    """True for a compare-and-swap."""
    return instruction.opcode == "atom" and "cas" in instruction.mods


def guesses(code: Sequence[ptx.Instruction]) -> frozenset[ptx.Instruction]:
    """Loads of a compare-and-swap's expected value: if that is stale, the compare-and-swap fails."""
    compared = {reg.name for i in code if compares(i) for reg in registers(i.operands[2])}
    found: set[ptx.Instruction] = set()
    while compared:
        into = [
            i
            for i in code
            if i.opcode in ("ld", "mov") and any(reg.name in compared for reg in registers(i.operands[0]))
        ]
        found.update(i for i in into if i.opcode == "ld")
        more = {reg.name for i in into if i.opcode == "mov" for reg in registers(i.operands[1])} - compared
        if not more:
            break
        compared |= more
    return frozenset(found)


def registers(operand: ptx.Operand) -> Iterable[ptx.Reg]:
    """All registers of an operand."""
    match operand:
        case ptx.Reg():
            yield operand
        case ptx.Address(base=inner) | ptx.Not(operand=inner):
            yield from registers(inner)
        case ptx.TensorAddress(base=inner, coordinates=items):
            for item in (inner, *items):
                yield from registers(item)
        case ptx.Vector(items=items):
            for item in items:
                yield from registers(item)
        case ptx.Pair(first=first, second=second):
            yield from registers(first)
            yield from registers(second)
        case _:
            return

"""Meetings: synchronisation points inserted before instructions that several lanes or warps execute together.

A warp-wide instruction (shfl.sync, bar.sync, mma and others, PTX ISA 9.7.9.6, 9.7.13.1, 9.7.14.5) needs the lanes of
its member mask, or all lanes of the warp, which may arrive at different times, as after an mbarrier. barrier.sync and
barrier.cluster without .aligned also synchronise a warp's lanes, at any such instructions. A wgmma needs the four warps
of a warpgroup. wgmma.fence synchronises them (:mod:`wgmma`), but between two products after one fence a warp may do
other work (9.7.15.7.1: accumulators need no second fence). So such an instruction gets a meeting unless an earlier one
in straight-line code has synchronised its threads.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Literal

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.ptx.traits import names_every_lane
from cutegen_lab.emulator.translate.emit import Emit

Meeting = Literal["warp", "warpgroup"]
_MASKED = {"shfl", "vote", "match", "redux", "elect"}  # opcodes whose last operand is the member mask
_BARRIERS = {"bar", "barrier"}
# Keys for instructions at any of which lanes may wait for each other, by kind.
_ANYWHERE = {"sync": -1, "red": -1, "arrive": -2, "cluster arrive": -3, "cluster wait": -4}
ANY_BAR_WARP_SYNC = -5


def meetings(code: Sequence[ptx.Instruction], breaks: Container[int]) -> dict[int, list[Meeting]]:
    """Meetings by instruction index. ``breaks``: instructions at which threads may arrive separately."""
    found, warps, warpgroups = dict[int, list[Meeting]](), False, False
    for i, instruction in enumerate(code):
        if i in breaks:
            warps = warpgroups = False
        if not _takes_a_warp(instruction):
            continue
        if not warps or _is_warp_sync(instruction):
            found[i] = ["warp"]
        if instruction.guard is not None:  # with a guard, only some lanes meet
            continue
        warps = warps or _members(instruction) is None
        if instruction.opcode == "wgmma":
            if "mma_async" in instruction.mods and not warpgroups:
                found.setdefault(i, []).append("warpgroup")
            warpgroups = warpgroups or "mma_async" in instruction.mods or "fence" in instruction.mods
    return found


def meeting(emit: Emit, kind: Meeting) -> Emit:
    """A meeting before ``emit``, which is not counted as an instruction."""
    guard, negated = emit.ins.guard, emit.ins.negated
    made = Emit(replace(emit.ins, guard=None, negated=False), emit.symbols)
    made.parks, made.klass = True, ""
    if kind == "warpgroup":
        made.line("return g.ctas.products.meet(g)")
        return made
    members = _members(emit.ins)
    made.meets = _name(emit.ins)
    mask = None if members is None else made.s(members, "u32")
    held = None if guard is None else f"{'~' if negated else ''}{made.s(guard, 'pred')}"
    made.line(f"return lanes_meet(g,{mask},{_anywhere(emit.ins)},{_ends(emit.ins)!r},{held})")
    return made


def _name(instruction: ptx.Instruction) -> str:
    """The instruction's name in messages."""
    if instruction.opcode in _MASKED or _is_warp_sync(instruction):
        return "a warp-wide instruction"
    if instruction.opcode in _BARRIERS:
        return "a cluster barrier" if "cluster" in instruction.mods else "a barrier"
    if instruction.opcode in ("wgmma", "tensormap"):
        return f"{instruction.opcode}.{instruction.mods[0]}"
    return instruction.opcode


def _takes_a_warp(instruction: ptx.Instruction) -> bool:
    if instruction.opcode in _MASKED:
        return "sync" in instruction.mods
    if _is_warp_sync(instruction):
        return instruction.guard is not None  # without a guard it synchronises by itself
    return instruction.opcode in _BARRIERS or "aligned" in instruction.mods


def _is_warp_sync(instruction: ptx.Instruction) -> bool:
    return instruction.opcode == "bar" and "warp" in instruction.mods


def _anywhere(instruction: ptx.Instruction) -> int | None:
    """The key of its kind if lanes may execute different instructions; None if they must execute this one."""
    if _is_warp_sync(instruction):
        return ANY_BAR_WARP_SYNC
    if instruction.opcode != "barrier" or "aligned" in instruction.mods:
        return None
    kind = next((mod for mod in ("sync", "red", "arrive", "wait") if mod in instruction.mods), "sync")
    return _ANYWHERE[f"cluster {kind}" if "cluster" in instruction.mods else kind]


def _ends(instruction: ptx.Instruction) -> str:
    """How exited lanes count: bar.warp.sync waits for "non-exited threads"; at instructions with a member mask and at
    barriers, only lanes that exited earlier in the text count as arrived; other instructions need all lanes of the
    warp."""
    if _is_warp_sync(instruction):
        return "come"
    return "come if before" if instruction.opcode in _MASKED | _BARRIERS else "are missed"


def _members(instruction: ptx.Instruction) -> ptx.Operand | None:
    """The member mask; None if every lane takes part."""
    masked = instruction.opcode in _MASKED or _is_warp_sync(instruction)
    mask = instruction.operands[-1] if masked else None
    return None if mask is None or names_every_lane(mask) else mask

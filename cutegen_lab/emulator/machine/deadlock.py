"""What to say when every thread that still runs waits: who, where, and for what."""

from __future__ import annotations

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.machine.cta_batch import CtaBatch
from cutegen_lab.emulator.machine.lane_group import LaneGroup
from cutegen_lab.emulator.ptx.syntax import Instruction
from cutegen_lab.emulator.translate.emit import Emit

_MOST = 8  # groups of threads that are named


def stuck(chunk: CtaBatch, parked: list[LaneGroup]) -> Trap:
    """The trap for groups that all wait at one barrier or another."""
    groups = sorted(parked, key=lambda g: g.pc)
    named = [g for g in groups if _is_named_barrier(_instruction(chunk, g)) and not _emit(chunk, g).meets]
    polled = [g.gid >> 5 for g in groups if chunk.program.wait_rows[g.pc] is not None]
    waited_for = np.concatenate(polled) if polled else np.array([], np.int64)  # warps with lanes at an mbarrier
    alone = [g for g in groups if _emit(chunk, g).meets and not np.isin(g.gid >> 5, waited_for).any()]
    if alone:
        verdict, message, first = (
            Verdict.BARRIER_DIVERGENCE,
            chunk.warp_barrier.stuck(alone[0], _emit(chunk, alone[0]).meets),
            alone[0],
        )
    elif named:
        gone = int(chunk.threads * chunk.count) - int((~chunk.exited).sum())
        verdict, message, first = (
            Verdict.BARRIER_DIVERGENCE,
            f"a barrier never opens; {gone} threads have ended",
            named[0],
        )
    else:
        verdict, message, first = Verdict.DEADLOCK, "every thread waits", groups[0]
    trap = Trap(verdict, message, int(first.gid[0]))
    trap.block = first.pc
    trap.waiting = [(_who(chunk, g), _instruction(chunk, g)) for g in groups[:_MOST]]
    return trap


def _instruction(chunk: CtaBatch, g: LaneGroup) -> Instruction:
    return _emit(chunk, g).ins


def _emit(chunk: CtaBatch, g: LaneGroup) -> Emit:
    return chunk.program.blocks[g.pc].emits[0]


def _is_named_barrier(instruction: Instruction) -> bool:
    return instruction.opcode in ("bar", "barrier") and "cluster" not in instruction.mods


def _who(chunk: CtaBatch, g: LaneGroup) -> str:
    """The threads of a group by the warps of its first block, and what they wait for."""
    block = g.block == g.block[0]
    warps = np.unique(g.gid[block] % chunk.padded_threads >> 5)
    several = f" of {len(np.unique(g.block))} blocks" if not block.all() else ""
    shown = f"{g.n} threads: {_ranges(warps.tolist())} of block {chunk.place(int(g.gid[0]))[0]}{several}"
    slots = g.cache.get("mbarrier")
    if slots is None or chunk.program.wait_rows[g.pc] is None:  # or of an mbarrier that it waited for before
        return shown
    return f"{shown}, for {chunk.mbarriers.missing(int(slots[0]), chunk.shared.stride, chunk.shared.first)}"


def _ranges(numbers: list[int]) -> str:
    """``warps 0-3, 8``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    shown = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
    return f"warp{'s' if len(numbers) > 1 else ''} {shown}"

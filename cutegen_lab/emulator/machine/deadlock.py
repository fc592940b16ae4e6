"""The fault when every running thread waits: who waits where, for what."""

from __future__ import annotations

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.machine.cta_batch import CtaBatch
from cutegen_lab.emulator.machine.lane_group import LaneGroup
from cutegen_lab.emulator.ptx.syntax import Instruction
from cutegen_lab.emulator.translate.emit import Emit

_MOST = 8  # maximum number of groups of threads that the trap names


def stuck(ctas: CtaBatch, parked: list[LaneGroup]) -> Trap:
    """The trap for groups that all wait."""
    groups = sorted(parked, key=lambda g: g.pc)
    named = [g for g in groups if _is_named_barrier(_instruction(ctas, g)) and not _emit(ctas, g).meets]
    polled = [g.gid >> 5 for g in groups if ctas.program.wait_rows[g.pc] is not None]
    waited_for = np.concatenate(polled) if polled else np.array([], np.int64)  # warps with lanes at an mbarrier
    diverged = [g for g in groups if _emit(ctas, g).meets and not np.isin(g.gid >> 5, waited_for).any()]
    if diverged:
        verdict, message, first = (
            Verdict.BARRIER_DIVERGENCE,
            ctas.warp_barrier.stuck(diverged[0], _emit(ctas, diverged[0]).meets),
            diverged[0],
        )
    elif named:
        gone = int(ctas.threads * ctas.count) - int((~ctas.exited).sum())
        verdict, message, first = (
            Verdict.BARRIER_DIVERGENCE,
            f"a barrier never opens; {gone} threads have ended",
            named[0],
        )
    else:
        verdict, message, first = Verdict.DEADLOCK, "every thread waits", groups[0]
    trap = Trap(verdict, message, int(first.gid[0]))
    trap.block = first.pc
    trap.waiting = [(_who(ctas, g), _instruction(ctas, g)) for g in groups[:_MOST]]
    return trap


def _instruction(ctas: CtaBatch, g: LaneGroup) -> Instruction:
    return _emit(ctas, g).ins


def _emit(ctas: CtaBatch, g: LaneGroup) -> Emit:
    return ctas.program.blocks[g.pc].emits[0]


def _is_named_barrier(instruction: Instruction) -> bool:
    return instruction.opcode in ("bar", "barrier") and "cluster" not in instruction.mods


def _who(ctas: CtaBatch, g: LaneGroup) -> str:
    """The threads of a group by the warps of its first block, and what they wait for."""
    block = g.block == g.block[0]
    warps = np.unique(g.gid[block] % ctas.padded_threads >> 5)
    several = f" of {len(np.unique(g.block))} blocks" if not block.all() else ""
    shown = f"{g.n} threads: {_ranges(warps.tolist())} of block {ctas.place(int(g.gid[0]))[0]}{several}"
    slots = g.cache.get("mbarrier")
    if slots is None or ctas.program.wait_rows[g.pc] is None:  # the slots may be from an earlier wait
        return shown
    return f"{shown}, for {ctas.mbarriers.missing(int(slots[0]), ctas.shared.stride, ctas.shared.first)}"


def _ranges(numbers: list[int]) -> str:
    """Numbers of warps as text: ``warps 0-3, 8``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    shown = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
    return f"warp{'s' if len(numbers) > 1 else ''} {shown}"

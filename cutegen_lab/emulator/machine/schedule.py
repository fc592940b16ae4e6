"""Runs a CTA batch: the lowest program counter of a strand first, so that diverged lanes reconverge early.

A group at a closed barrier is parked; when nothing else can run, parked groups are polled again. When none of them can
continue either, the kernel is deadlocked and the trap says where each group waits. A group that polls memory in a loop
pauses until the other groups have run, since one of these may write the value for which it waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.protocols import Cancel
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.machine.cta_batch import CtaBatch
from cutegen_lab.emulator.machine.deadlock import stuck
from cutegen_lab.emulator.machine.interleaving import Interleaving
from cutegen_lab.emulator.machine.lane_group import LaneGroup, merge
from cutegen_lab.emulator.translate.cfg import EXIT

_SPURIOUS_WAKES = 3  # how often a stuck try_wait fails before the kernel counts as deadlocked
_NEVER = 1 << 60
# number of strong reads of a strand after which the reading group pauses
_PATIENCE = 32


@dataclass
class Scheduler:
    """``budget``: maximum number of instructions dispatched for the batch; a longer run counts as an endless loop.

    ``warps``: seed of the interleaving, 0 for lockstep. ``resident``: blocks that the GPU would run at a time.
    """

    ctas: CtaBatch
    cancel: Cancel
    budget: int
    warps: int = 0
    resident: int | None = None

    def run(self) -> None:
        """Runs all threads to their end. Raises Trap, Cancelled."""
        self._strands = self._interleaving()
        self._ready: list[LaneGroup] = self._strands.groups()
        self._parked: list[LaneGroup] = []
        self._resting: list[LaneGroup] = []
        self._asked = [0] * self._strands.count  # strong reads by each strand since a group of it paused
        self._most = self.budget
        self._wakes = 0
        self._refused_polls: set[tuple[int, ...]] = set()  # (pc, first lane, slot, age) of polls that have failed
        while self._ready or self._parked or self._resting:
            if self._resting:
                self._rested()
            if not self._ready:
                self._wake()
                continue
            if self._parked and self._strands.asks():
                self._ask()
            same, self._ready = self._strands.choose(self._ready)
            self._advance(same[0] if len(same) == 1 else merge(same))
        if self.ctas.registers is not None:
            self.ctas.registers.settle()

    def _interleaving(self) -> Interleaving:
        return Interleaving(self.ctas, self.warps)

    def _advance(self, g: LaneGroup) -> None:
        """Runs ``g`` until it waits, splits, exits, reaches another group's program counter, or its turn ends."""
        program = self.ctas.program
        functions, blocks, hammocks = program.functions, program.blocks, program.hammocks
        branches = self.ctas.branches
        limit = min((x.pc for x in self._ready if x.strand == g.strand), default=_NEVER)
        turn = self._strands.turn()
        while True:
            pc = g.pc
            if pc >= limit or turn == 0:
                self._ready.append(g)
                return
            if program.asks_memory[pc]:
                self._asked[g.strand] += 1
                if self._asked[g.strand] > _PATIENCE and self._rests(g):
                    return
            turn = None if turn is None else turn - 1
            block = blocks[pc]
            passed = functions[pc](g)
            self._count(pc, g)
            if block.parks:
                if not self._pass(g, passed):
                    return
                continue
            if block.guard is None:
                if block.target is None:
                    g.pc = pc + 1
                elif block.target == EXIT:
                    self.ctas.exit(g)
                    return
                else:
                    g.pc = block.target
                continue
            taken = g.files[0][program.guard_rows[pc]]
            count = int(np.count_nonzero(taken))
            if block.negated:
                count = g.n - count
            if branches is not None:
                branches.met(self.ctas, g, taken, block.negated, count)
            if count == 0:
                g.pc = pc + 1
                continue
            target = block.target if block.target is not None else EXIT
            if count == g.n and target != EXIT:
                g.pc = target
                continue
            if block.negated:
                taken = ~taken
            if pc in hammocks:
                uses, defs = hammocks[pc]
                index = np.flatnonzero(~taken)
                part = g.subset(index, uses, pc + 1)
                functions[pc + 1](part)
                self._count(pc + 1, part)
                g.write_back(part, index, defs)
                g.pc = pc + 2
                continue
            self._split(g, taken, target)
            return

    def _rests(self, g: LaneGroup) -> bool:
        """Pauses ``g`` and the other lanes of its warps while other warps of its strand run: ready ones, else paused
        ones. False if there are no other warps."""
        self._asked[g.strand] = 0
        others, same_warps = self._apart(self._ready, g)
        if not _of(others, g.strand):
            self._ask()
            others, same_warps = self._apart(self._ready, g)
        if not _of(others, g.strand):
            rested, more = self._apart(_of(self._resting, g.strand), g)
            if not rested:
                return False
            others, same_warps = others + rested, same_warps + more
            self._resting = [x for x in self._resting if x.strand != g.strand]
        self._ready = others
        self._resting += [g, *same_warps]
        return True

    def _apart(self, groups: list[LaneGroup], g: LaneGroup) -> tuple[list[LaneGroup], list[LaneGroup]]:
        """Splits ``groups`` by warp: (lanes of other warps than ``g``'s, lanes of the same warps)."""
        warps, others, same_warps = np.unique(g.gid >> 5), list[LaneGroup](), list[LaneGroup]()
        for x in groups:
            shared = np.isin(x.gid >> 5, warps)
            for found, which in ((same_warps, shared), (others, ~shared)):
                if which.all():
                    found.append(x)
                elif which.any():
                    found.append(x.subset(np.flatnonzero(which), self.ctas.rows_to_copy(x, x.pc), x.pc))
        return others, same_warps

    def _rested(self) -> None:
        """Lets paused groups continue if no other group of their strand can."""
        running = {g.strand for g in self._ready}
        if done := [g for g in self._resting if g.strand not in running]:
            self._resting = [g for g in self._resting if g.strand in running]
            self._ready += done
            self._ask()

    def _split(self, g: LaneGroup, taken: np.ndarray, target: int) -> None:
        gone, stay = np.flatnonzero(taken), np.flatnonzero(~taken)
        if target == EXIT:
            self.ctas.exit(g.subset(gone, ([], [], [], []), 0))
        else:
            self._ready.append(g.subset(gone, self.ctas.rows_to_copy(g, target), target))
        if len(stay):
            self._ready.append(g.subset(stay, self.ctas.rows_to_copy(g, g.pc + 1), g.pc + 1))

    def _count(self, pc: int, g: LaneGroup) -> None:
        ctas = self.ctas
        ctas.counters.block_warps[pc] += g.warps()
        ctas.counters.block_lanes[pc] += g.n
        self.budget -= -(-ctas.program.blocks[pc].size // self._strands.count)
        if self.budget < 0:
            raise self._hang(pc, g)
        if self.cancel.is_set():
            raise Cancelled()

    def _hang(self, pc: int, g: LaneGroup) -> Trap:
        ctas = self.ctas
        ended = ctas.counters.blocks + int(ctas.have_ended(np.arange(ctas.count)).sum())
        message = (
            f"block {ctas.place(int(g.gid[0]))[0]} has not ended after {self._most - self.budget:,} instructions, and "
            f"{ended:,} of {math.prod(ctas.launch.grid):,} blocks have; the limit, which follows from the problem's "
            f"bytes and FLOPs, is {self._most:,}: an endless loop, or too much work for a thread"
        )
        if self.resident is not None and self.resident < math.prod(ctas.launch.grid):
            message += f", or it waits for blocks that have no room: {self.resident:,} run on the GPU at a time"
        trap = Trap(Verdict.HANG, message, int(g.gid[0]))
        trap.block = pc
        return trap

    def _pass(self, g: LaneGroup, passed: bool | np.ndarray) -> bool:
        """Moves lanes that ``passed`` past the wait and parks the rest. True if the whole group continues."""
        if passed is True or (passed is not False and bool(passed.all())):
            g.pc += 1
            g.arrived, g.gen = False, None
            return True
        if passed is not False and bool(passed.any()):
            index, rest = np.flatnonzero(passed), np.flatnonzero(~passed)
            self._ready.append(g.subset(index, self.ctas.rows_to_copy(g, g.pc + 1), g.pc + 1))
            waiting = g.subset(rest, self.ctas.rows_to_copy(g, g.pc), g.pc)
            waiting.arrived, waiting.gen = g.arrived, None if g.gen is None else g.gen[rest]
            if (slots := g.cache.get("mbarrier")) is not None:
                waiting.cache["mbarrier"] = slots
            g = waiting
        self._parked.append(g)
        return False

    def _wake(self) -> None:
        """Polls the parked groups. In race-detection mode each try_wait fails once per phase, and bulk copies arrive
        only when no group can continue without them, one mbarrier at a time. If no group can continue after that, stuck
        ``try_wait``s fail a few more times; then it is a deadlock.
        """
        self._ask()
        if self.ctas.async_races is not None and self._tell_not_yet(self._unaware()):
            return
        while not self._ready and self.ctas.bulk.deliver(self._waited_for()):
            self._ask()
        if self._ready:
            self._wakes = 0
        elif self._wakes < _SPURIOUS_WAKES and self._tell_not_yet(self._polling()):
            self._wakes += 1
        else:
            raise stuck(self.ctas, self._parked)

    def _polling(self) -> list[LaneGroup]:
        """Parked groups at a try_wait or test_wait."""
        rows = self.ctas.program.wait_rows
        return [g for g in self._parked if rows[g.pc] is not None]

    def _unaware(self) -> list[LaneGroup]:
        """Groups of :meth:`_polling` whose poll has not yet failed at this instruction in the mbarrier's phase."""
        found = {}
        for g in self._polling():
            slot = int(g.cache["mbarrier"][0])
            found[g.pc, int(g.gid[0]), slot, int(self.ctas.mbarriers.age[slot])] = g
        new = [g for key, g in found.items() if key not in self._refused_polls]
        self._refused_polls.update(found)
        return new

    def _waited_for(self) -> set[int]:
        """Slots of the mbarriers that parked groups poll."""
        return {slot for g in self._polling() for slot in g.cache["mbarrier"].tolist()}

    def _ask(self) -> None:
        """Polls the parked groups; those whose barrier has opened continue."""
        waiting, self._parked = self._strands.shuffle(self._parked), []
        for g in waiting:
            passed = self.ctas.program.functions[g.pc](g)
            if self._pass(g, passed):
                self._ready.append(g)

    def _tell_not_yet(self, polling: list[LaneGroup]) -> bool:
        """Makes the polls of the groups ``polling`` return false. Returns False if there are no groups."""
        for g in polling:
            self._parked.remove(g)
            g.files[0][self.ctas.program.wait_rows[g.pc]] = False
            g.pc += 1
            self._ready.append(g)
        return bool(polling)


def _of(groups: list[LaneGroup], strand: int) -> list[LaneGroup]:
    return [g for g in groups if g.strand == strand]

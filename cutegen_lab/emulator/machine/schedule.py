"""Runs a chunk: of a strand the minimum program counter first, so that diverged lanes meet again as soon as they can.

A group at a barrier that is not open is parked; when nothing else can run, the parked are asked again. When none of
them can go on either, the kernel is stuck and the trap says where everyone waits. A group that asks memory again and
again rests until the others have run: what it waits for may be theirs to write, further on in the text.
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

_SPURIOUS_WAKES = 3  # how often a stuck try_wait is told "not yet" before the kernel counts as deadlocked
_NEVER = 1 << 60
_PATIENCE = 32  # strong reads of memory that a strand makes before those that make them rest


@dataclass
class Scheduler:
    """``budget`` bounds the instructions dispatched for one chunk: a longer run is taken for an endless loop.

    ``warps``: the seed of their order. ``resident``: how many blocks the GPU would run at a time.
    """

    chunk: CtaBatch
    cancel: Cancel
    budget: int
    warps: int = 0
    resident: int | None = None

    def run(self) -> None:
        """Raises Trap, Cancelled."""
        self._strands = self._interleaving()
        self._ready: list[LaneGroup] = self._strands.groups()
        self._parked: list[LaneGroup] = []
        self._resting: list[LaneGroup] = []
        self._asked = [0] * self._strands.count  # strong reads of each strand since one of it rested
        self._most = self.budget
        self._wakes = 0
        self._refused_polls: set[tuple[int, ...]] = set()  # who, where and in which phase
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
        if self.chunk.registers is not None:
            self.chunk.registers.settle()

    def _interleaving(self) -> Interleaving:
        return Interleaving(self.chunk, self.warps)

    def _advance(self, g: LaneGroup) -> None:
        """Runs ``g`` until it waits, splits, ends, reaches where others stand, or it is another strand's turn."""
        program = self.chunk.program
        functions, blocks, hammocks = program.functions, program.blocks, program.hammocks
        branches = self.chunk.branches
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
                    self.chunk.exit(g)
                    return
                else:
                    g.pc = block.target
                continue
            taken = g.files[0][program.guard_rows[pc]]
            count = int(np.count_nonzero(taken))
            if block.negated:
                count = g.n - count
            if branches is not None:
                branches.met(self.chunk, g, taken, block.negated, count)
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
        """Lets the other warps of its strand run before ``g`` goes on, and before the other lanes of its warps do:
        those that are ready, else those that rest. Are there any?"""
        self._asked[g.strand] = 0
        others, beside = self._apart(self._ready, g)
        if not _of(others, g.strand):
            self._ask()
            others, beside = self._apart(self._ready, g)
        if not _of(others, g.strand):
            rested, beside_too = self._apart(_of(self._resting, g.strand), g)
            if not rested:
                return False
            others, beside = others + rested, beside + beside_too
            self._resting = [x for x in self._resting if x.strand != g.strand]
        self._ready = others
        self._resting += [g, *beside]
        return True

    def _apart(self, groups: list[LaneGroup], g: LaneGroup) -> tuple[list[LaneGroup], list[LaneGroup]]:
        """``groups`` by warp: lanes of others than ``g`` is of, and lanes beside ``g``."""
        mine, others, beside = np.unique(g.gid >> 5), list[LaneGroup](), list[LaneGroup]()
        for x in groups:
            shared = np.isin(x.gid >> 5, mine)
            for found, which in ((beside, shared), (others, ~shared)):
                if which.all():
                    found.append(x)
                elif which.any():
                    found.append(x.subset(np.flatnonzero(which), self.chunk.rows_to_copy(x, x.pc), x.pc))
        return others, beside

    def _rested(self) -> None:
        """Resting groups continue if no other group of their strand can."""
        running = {g.strand for g in self._ready}
        if done := [g for g in self._resting if g.strand not in running]:
            self._resting = [g for g in self._resting if g.strand in running]
            self._ready += done
            self._ask()

    def _split(self, g: LaneGroup, taken: np.ndarray, target: int) -> None:
        gone, stay = np.flatnonzero(taken), np.flatnonzero(~taken)
        if target == EXIT:
            self.chunk.exit(g.subset(gone, ([], [], [], []), 0))
        else:
            self._ready.append(g.subset(gone, self.chunk.rows_to_copy(g, target), target))
        if len(stay):
            self._ready.append(g.subset(stay, self.chunk.rows_to_copy(g, g.pc + 1), g.pc + 1))

    def _count(self, pc: int, g: LaneGroup) -> None:
        chunk = self.chunk
        chunk.counters.block_warps[pc] += g.warps()
        chunk.counters.block_lanes[pc] += g.n
        self.budget -= -(-chunk.program.blocks[pc].size // self._strands.count)
        if self.budget < 0:
            raise self._hang(pc, g)
        if self.cancel.is_set():
            raise Cancelled()

    def _hang(self, pc: int, g: LaneGroup) -> Trap:
        chunk = self.chunk
        ended = chunk.counters.blocks + int(chunk.have_ended(np.arange(chunk.count)).sum())
        message = (
            f"block {chunk.place(int(g.gid[0]))[0]} has not ended after {self._most - self.budget:,} instructions, and "
            f"{ended:,} of {math.prod(chunk.launch.grid):,} blocks have; the limit, which follows from the problem's "
            f"bytes and FLOPs, is {self._most:,}: an endless loop, or too much work for a thread"
        )
        if self.resident is not None and self.resident < math.prod(chunk.launch.grid):
            message += f", or it waits for blocks that have no room: {self.resident:,} run on the GPU at a time"
        trap = Trap(Verdict.HANG, message, int(g.gid[0]))
        trap.block = pc
        return trap

    def _pass(self, g: LaneGroup, passed: bool | np.ndarray) -> bool:
        """Lets lanes through a waiting point; parks the rest. True where the whole group goes on."""
        if passed is True or (passed is not False and bool(passed.all())):
            g.pc += 1
            g.arrived, g.gen = False, None
            return True
        if passed is not False and bool(passed.any()):
            index, rest = np.flatnonzero(passed), np.flatnonzero(~passed)
            self._ready.append(g.subset(index, self.chunk.rows_to_copy(g, g.pc + 1), g.pc + 1))
            waiting = g.subset(rest, self.chunk.rows_to_copy(g, g.pc), g.pc)
            waiting.arrived, waiting.gen = g.arrived, None if g.gen is None else g.gen[rest]
            if (slots := g.cache.get("mbarrier")) is not None:
                waiting.cache["mbarrier"] = slots
            g = waiting
        self._parked.append(g)
        return False

    def _wake(self) -> None:
        """Asks parked groups whether they can continue. In race-detection mode each poll fails once a phase, and bulk
        copies arrive only when no group can continue without them, one mbarrier at a time. If no group can continue
        after that, stuck ``try_wait``s fail a few more times; then it is a deadlock.
        """
        self._ask()
        if self.chunk.async_races is not None and self._tell_not_yet(self._unaware()):
            return
        while not self._ready and self.chunk.bulk.deliver(self._waited_for()):
            self._ask()
        if self._ready:
            self._wakes = 0
        elif self._wakes < _SPURIOUS_WAKES and self._tell_not_yet(self._polling()):
            self._wakes += 1
        else:
            raise stuck(self.chunk, self._parked)

    def _polling(self) -> list[LaneGroup]:
        """Parked groups that poll an mbarrier."""
        rows = self.chunk.program.wait_rows
        return [g for g in self._parked if rows[g.pc] is not None]

    def _unaware(self) -> list[LaneGroup]:
        """Polling groups whose poll has not yet failed at this instruction in the mbarrier's current phase."""
        found = {}
        for g in self._polling():
            slot = int(g.cache["mbarrier"][0])
            found[g.pc, int(g.gid[0]), slot, int(self.chunk.mbarriers.age[slot])] = g
        new = [g for key, g in found.items() if key not in self._refused_polls]
        self._refused_polls.update(found)
        return new

    def _waited_for(self) -> set[int]:
        """The mbarriers that are polled."""
        return {slot for g in self._polling() for slot in g.cache["mbarrier"].tolist()}

    def _ask(self) -> None:
        """Lets those go on whose barriers have opened."""
        waiting, self._parked = self._strands.shuffle(self._parked), []
        for g in waiting:
            passed = self.chunk.program.functions[g.pc](g)
            if self._pass(g, passed):
                self._ready.append(g)

    def _tell_not_yet(self, polling: list[LaneGroup]) -> bool:
        """Lets those that poll an mbarrier go on without what they wait for. Are there any?"""
        for g in polling:
            self._parked.remove(g)
            g.files[0][self.chunk.program.wait_rows[g.pc]] = False
            g.pc += 1
            self._ready.append(g)
        return bool(polling)


def _of(groups: list[LaneGroup], strand: int) -> list[LaneGroup]:
    return [g for g in groups if g.strand == strand]

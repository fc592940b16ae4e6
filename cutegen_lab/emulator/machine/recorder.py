"""A scheduler that records a timeline of the warps of one block."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from cutegen_lab.core.timeline import Kind, Span, Timeline
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.machine.interleaving import Interleaving, InTurn
from cutegen_lab.emulator.machine.lane_group import LaneGroup
from cutegen_lab.emulator.machine.schedule import Scheduler
from cutegen_lab.emulator.tma.bulk import Landing

MOST_SPANS = 60_000
_GROUPS = ("wgmma", "cp.async", "cp.async.bulk")  # families that are committed and waited for in groups
_KINDS: dict[str, Kind] = {"wgmma": "product", "cp.async": "copy in", "cp.async.bulk": "copy out"}
Open = tuple[int, str, int]
"""(start, text, line) of a span that has begun."""


class Recorder(Scheduler):
    """Records the first block of its batch. Time is the number of instructions that warps of that block execute; an
    instruction that several warps execute together counts once."""

    def record(self, source_line: Callable[[int], int]) -> Timeline:
        """Runs the batch; returns the timeline of its first block. ``source_line``: PTX line → line of the candidate.
        Raises Trap, Cancelled."""
        self._line = source_line
        self._clock = 0
        self._spans: list[Span] = []
        self._running: dict[int, tuple[int, int]] = {}  # start and end of each warp's current span
        self._waits: dict[int, Open] = {}
        self._issued: dict[tuple[int, str], list[Open]] = defaultdict(list)  # work not yet committed, by warp and kind
        self._committed: dict[tuple[int, str], list[list[Open]]] = defaultdict(list)
        self._landings: dict[int, tuple[Landing, Open]] = {}
        self.run()
        self._landed(())
        for warp in list(self._running):
            self._stop(warp)
        for warp, begun in list(self._waits.items()):
            self._add(warp, "wait", begun)
        for (warp, family), groups in self._committed.items():
            for begun in [each for group in [*groups, self._issued[warp, family]] for each in group]:
                self._add(warp, _KINDS[family], begun)
        ctas = self.ctas
        where, _ = ctas.place(0)
        warps, spans = ctas.padded_threads // 32, sorted(self._spans, key=lambda span: (span.end, span.start))
        return Timeline(ctas.launch.kernel, where, warps, self._clock, tuple(spans), len(spans) >= MOST_SPANS)

    def _interleaving(self) -> Interleaving:
        return InTurn(self.ctas)

    def _count(self, pc: int, g: LaneGroup) -> None:
        """Counts a basic block that was executed."""
        if warps := self._warps(g):
            parks = self.ctas.program.blocks[pc].parks
            start = self._clock
            if not parks:  # a waiting group is counted when it continues
                self._execute(pc, warps, start)
            self._landed(self.ctas.bulk.under_way)
        super()._count(pc, g)

    def _execute(self, pc: int, warps: list[int], start: int) -> None:
        block = self.ctas.program.blocks[pc]
        code = [emit.ins for emit in block.emits if emit.klass]  # without synchronisation points
        self._clock += len(code) + (block.terminator is not None)
        for warp in warps:
            self._begin(warp, start)
            self._running[warp] = (self._running.get(warp, (start, 0))[0], self._clock)
        for at, instruction in enumerate(code, start):
            self._note(instruction, warps, at)

    def _begin(self, warp: int, now: int) -> None:
        """``warp`` executes an instruction at time ``now``: records the wait that ends here, if it waited, and its span
        of execution, unless that reaches ``now`` and so continues."""
        if warp in self._waits:
            self._add(warp, "wait", self._waits.pop(warp), now)
        if warp in self._running and self._running[warp][1] != now:
            self._stop(warp)

    def _pass(self, g: LaneGroup, passed: bool | np.ndarray) -> bool:
        pc, warps = g.pc, self._warps(g)
        went_on = super()._pass(g, passed)
        if warps and went_on:
            self._execute(pc, warps, self._clock)
        elif warps:
            instruction = self.ctas.program.blocks[pc].emits[0].ins
            kept = self._warps_at(pc)
            for warp in warps:
                self._stop(warp)
                if warp in kept:
                    self._waits.setdefault(warp, (self._clock, instruction.name, self._line(instruction.line)))
        return went_on

    def _warps_at(self, pc: int) -> set[int]:
        """Warps that are parked at a basic block."""
        return {warp for parked in self._parked if parked.pc == pc for warp in self._warps(parked)}

    def _warps(self, g: LaneGroup) -> list[int]:
        """Warps of the recorded block among those of ``g``."""
        numbers = g.warp_numbers()
        return list(map(int, numbers[numbers < self.ctas.padded_threads // 32]))

    def _note(self, instruction: ptx.Instruction, warps: list[int], at: int) -> None:
        """Records asynchronous work that an instruction begins, commits or waits for."""
        name = instruction.name
        family = next((family for family in reversed(_GROUPS) if name.startswith(family + ".")), None)
        if family is None:
            return
        for warp in warps:
            issued, committed = self._issued[warp, family], self._committed[warp, family]
            if ".commit_group" in name:
                committed.append(list(issued))
                issued.clear()
            elif ".wait_all" in name or ".wait_group" in name:
                left = 0 if ".wait_all" in name else _immediate(instruction)
                while len(committed) > left:
                    for begun in committed.pop(0):
                        self._add(warp, _KINDS[family], begun, at)
                if ".wait_all" in name:
                    issued.clear()
            elif family == "cp.async" and ".mbarrier." in name:  # the spans of its copies end here
                for begun in issued:
                    self._add(warp, "copy in", begun, at)
                issued.clear()
            elif _begins(name, family) and not issued:  # a group is one span
                issued.append((at, name, self._line(instruction.line)))

    def _landed(self, under_way: tuple[Landing, ...]) -> None:
        """Records bulk copies into shared memory that were issued or have landed."""
        left = {id(landing) for landing in under_way}
        for key in [key for key in self._landings if key not in left]:
            landing, begun = self._landings.pop(key)
            self._add(landing.gid // 32, "copy in", begun)
        for landing in under_way:
            if id(landing) not in self._landings and landing.gid < self.ctas.padded_threads:
                instruction = self.ctas.program.source_map.get(landing.line)
                line = self._line(instruction.line) if instruction else 0
                name = instruction.name if instruction else "cp.async.bulk"
                self._landings[id(landing)] = landing, (self._clock, name, line)

    def _stop(self, warp: int) -> None:
        if warp in self._running:
            start, end = self._running.pop(warp)
            self._add(warp, "run", (start, "", 0), end)

    def _add(self, warp: int, kind: Kind, begun: Open, end: int | None = None) -> None:
        start, label, line = begun
        until = self._clock if end is None else end
        if until > start and len(self._spans) < MOST_SPANS:
            self._spans.append(Span(warp, kind, start, until, label, line))


def _begins(name: str, family: str) -> bool:
    """True for an instruction that begins asynchronous work, which is committed in groups."""
    if family == "wgmma":
        return "mma_async" in name
    if family == "cp.async.bulk":
        return ".global.shared" in name
    return True


def _immediate(instruction: ptx.Instruction) -> int:
    operand = instruction.operands[0] if instruction.operands else None
    return int(operand.value) if isinstance(operand, ptx.Imm) else 0

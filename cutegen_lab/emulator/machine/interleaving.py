"""Interleaving of warps: lockstep is one schedule of many, and hides faults that depend on the schedule.

The warps of a CTA batch (warpgroups if it uses wgmma) are split at random into a few *strands*, sets that run in
lockstep. The strands take turns of a few basic blocks, as an SM's schedulers may choose (PTX ISA 3.1 "A Set of SIMT
Multiprocessors"; CUDA C++ Programming Guide, "Hardware Multithreading").
"""

from __future__ import annotations

import random

import numpy as np

from cutegen_lab.emulator.machine.cta_batch import CtaBatch
from cutegen_lab.emulator.machine.lane_group import LaneGroup
from cutegen_lab.emulator.ptx.types import Array

_WARP, _WARPGROUP = 32, 128
_MOST = 8  # maximum number of strands: each costs as many dispatches as all warps in lockstep
_TURNS = (1, 2, 8, 64)  # lengths of a turn, in basic blocks

_PATIENCE = 8  # mean number of turns between polls of waiting groups


class Interleaving:
    """Divides the warps into strands and chooses which runs next. ``seed`` 0: a single strand (lockstep)."""

    def __init__(self, ctas: CtaBatch, seed: int) -> None:
        self._ctas = ctas
        self._draw = random.Random(seed) if seed else None  # noqa: S311 - an order of warps is no secret
        self.count = 1 if self._draw is None else min(_MOST, self._units())

    def groups(self) -> list[LaneGroup]:
        """All threads of the batch at the kernel's first instruction."""
        lanes = self._ctas.all_lanes()
        if self._draw is None or self.count == 1:
            return [_at_the_start(self._ctas, lanes)]
        dealt = np.array([self._draw.randrange(self.count) for _ in range(self._units())])[self._unit(lanes)]
        groups = []
        for strand in range(self.count):
            if len(chosen := lanes[dealt == strand]):
                groups.append(_at_the_start(self._ctas, chosen))
                groups[-1].strand = strand
        return groups

    def choose(self, ready: list[LaneGroup]) -> tuple[list[LaneGroup], list[LaneGroup]]:
        """(groups that run next: those of one strand at its lowest program counter, all other groups)."""
        strand = ready[0].strand if self._draw is None else self._draw.choice(ready).strand
        pc = min(g.pc for g in ready if g.strand == strand)
        chosen = [g for g in ready if g.strand == strand and g.pc == pc]
        return chosen, [g for g in ready if g.strand != strand or g.pc != pc]

    def turn(self) -> int | None:
        """Number of basic blocks that the chosen strand runs; None for no limit."""
        return None if self._draw is None else self._draw.choice(_TURNS)

    def asks(self) -> bool:
        """True if waiting groups are to be polled now; False in lockstep, which polls them only when nothing else can
        run."""
        return self._draw is not None and not self._draw.randrange(_PATIENCE)

    def shuffle(self, waiting: list[LaneGroup]) -> list[LaneGroup]:
        """The order in which waiting groups are polled."""
        waiting = sorted(waiting, key=lambda g: g.pc)
        if self._draw is not None:
            self._draw.shuffle(waiting)
        return waiting

    def _unit(self, lanes: Array) -> Array:
        """The warp, or warpgroup, of each lane."""
        width = _WARPGROUP if self._ctas.program.uses_wgmma else _WARP
        each = -(-self._ctas.padded_threads // width)
        return np.asarray(lanes // self._ctas.padded_threads * each + lanes % self._ctas.padded_threads // width)

    def _units(self) -> int:
        return int(self._unit(np.array([len(self._ctas.exited) - 1]))[0]) + 1


class InTurn(Interleaving):
    """Round-robin: each warp (or warpgroup) executes one basic block in turn; waiting groups are polled every time."""

    def __init__(self, ctas: CtaBatch) -> None:
        super().__init__(ctas, 0)
        self.count, self._last = self._units(), -1

    def groups(self) -> list[LaneGroup]:
        lanes = self._ctas.all_lanes()
        unit = self._unit(lanes)
        found = [_at_the_start(self._ctas, lanes[unit == number]) for number in np.unique(unit)]
        for strand, group in enumerate(found):
            group.strand = strand
        return found

    def choose(self, ready: list[LaneGroup]) -> tuple[list[LaneGroup], list[LaneGroup]]:
        able = sorted({g.strand for g in ready})
        self._last = next((strand for strand in able if strand > self._last), able[0])
        pc = min(g.pc for g in ready if g.strand == self._last)
        chosen = [g for g in ready if g.strand == self._last and g.pc == pc]
        return chosen, [g for g in ready if g.strand != self._last or g.pc != pc]

    def turn(self) -> int | None:
        return 1

    def asks(self) -> bool:
        return True


def _at_the_start(ctas: CtaBatch, lanes: Array) -> LaneGroup:
    """``lanes`` at the first instruction. Registers are poisoned if the kernel may read unwritten ones."""
    group = LaneGroup(ctas, lanes, 0)
    if ctas.program.reads_unwritten:
        for file in group.files[1:]:
            file.view(np.uint8).fill(0xFF)
    return group

"""Warps that run apart: lockstep is one order of many, and hides what depends on the order.

All warps of a chunk are dealt to a few strands at random, by warpgroups where they work together. A strand runs some
basic blocks, and then another does, as a multiprocessor's schedulers may choose (PTX ISA 3.1 "A Set of SIMT
Multiprocessors"; CUDA C++ Programming Guide, "Hardware Multithreading").
"""

from __future__ import annotations

import random

import numpy as np

from cutegen_lab.emulator.machine.cta_batch import CtaBatch
from cutegen_lab.emulator.machine.lane_group import LaneGroup
from cutegen_lab.emulator.ptx.types import Array

_WARP, _WARPGROUP = 32, 128
_MOST = 8  # strands: each costs as many dispatches as all warps in lockstep
_TURNS = (1, 2, 8, 64)  # basic blocks that a strand runs before it may be another's turn

_PATIENCE = 8  # turns after which those that wait are asked, on average


class Interleaving:
    """``seed`` 0: one strand, which is never interrupted."""

    def __init__(self, chunk: CtaBatch, seed: int) -> None:
        self._chunk = chunk
        self._draw = random.Random(seed) if seed else None  # noqa: S311 - an order of warps is no secret
        self.count = 1 if self._draw is None else min(_MOST, self._units())

    def groups(self) -> list[LaneGroup]:
        """All threads of the chunk at the kernel's first instruction."""
        lanes = self._chunk.all_lanes()
        if self._draw is None or self.count == 1:
            return [_at_the_start(self._chunk, lanes)]
        dealt = np.array([self._draw.randrange(self.count) for _ in range(self._units())])[self._unit(lanes)]
        groups = []
        for strand in range(self.count):
            if len(mine := lanes[dealt == strand]):
                groups.append(_at_the_start(self._chunk, mine))
                groups[-1].strand = strand
        return groups

    def choose(self, ready: list[LaneGroup]) -> tuple[list[LaneGroup], list[LaneGroup]]:
        """(groups that run next: a strand's at its lowest program counter, the others)."""
        strand = ready[0].strand if self._draw is None else self._draw.choice(ready).strand
        pc = min(g.pc for g in ready if g.strand == strand)
        chosen = [g for g in ready if g.strand == strand and g.pc == pc]
        return chosen, [g for g in ready if g.strand != strand or g.pc != pc]

    def turn(self) -> int | None:
        """Number of basic blocks that the chosen strand runs; None for no limit."""
        return None if self._draw is None else self._draw.choice(_TURNS)

    def asks(self) -> bool:
        """Is it time to ask those that wait? In lockstep only when nothing else can run."""
        return self._draw is not None and not self._draw.randrange(_PATIENCE)

    def shuffle(self, waiting: list[LaneGroup]) -> list[LaneGroup]:
        """The order in which those that wait are asked."""
        waiting = sorted(waiting, key=lambda g: g.pc)
        if self._draw is not None:
            self._draw.shuffle(waiting)
        return waiting

    def _unit(self, lanes: Array) -> Array:
        """Which warp, or warpgroup, each lane belongs to."""
        width = _WARPGROUP if self._chunk.program.uses_wgmma else _WARP
        each = -(-self._chunk.padded_threads // width)
        return np.asarray(lanes // self._chunk.padded_threads * each + lanes % self._chunk.padded_threads // width)

    def _units(self) -> int:
        return int(self._unit(np.array([len(self._chunk.exited) - 1]))[0]) + 1


class InTurn(Interleaving):
    """Each warp (or warpgroup) executes a basic block, then the next one does, and those that wait are asked."""

    def __init__(self, chunk: CtaBatch) -> None:
        super().__init__(chunk, 0)
        self.count, self._last = self._units(), -1

    def groups(self) -> list[LaneGroup]:
        lanes = self._chunk.all_lanes()
        unit = self._unit(lanes)
        found = [_at_the_start(self._chunk, lanes[unit == number]) for number in np.unique(unit)]
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


def _at_the_start(chunk: CtaBatch, lanes: Array) -> LaneGroup:
    """Registers that nobody has written are poisoned, as fresh shared memory is."""
    group = LaneGroup(chunk, lanes, 0)
    if chunk.program.reads_unwritten:
        for file in group.files[1:]:
            file.view(np.uint8).fill(0xFF)
    return group

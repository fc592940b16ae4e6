"""cp.async copies in flight: other accesses to their bytes are races (PTX ISA 9.7.9.25.2 "Completion Mechanisms for
Asynchronous Copy Operations").

A copy may complete as late as its thread's wait (cp.async.wait_group, wait_all) or an mbarrier's phase
(cp.async.mbarrier.arrive). The emulator stores the bytes when the copy is issued, which is as early as allowed; until
the copy has been waited for, every other access to these bytes is a fault. Only in race-detection mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.roles import Group

_LINE_BITS = 20
_NEVER = -1


@dataclass
class _Batch:
    """Copies of one instruction: thread, first cell and commit group of each, and the mbarrier that it signals."""

    gid: Array
    cell: Array
    cells: int
    group: Array
    line: int
    slot: Array
    phase: Array

    def where(self, mask: Array) -> _Batch:
        parts = (getattr(self, name)[mask] for name in ("gid", "cell", "group", "slot", "phase"))
        return replace(self, **dict(zip(("gid", "cell", "group", "slot", "phase"), parts, strict=True)))

    def all_cells(self) -> Array:
        """The cells that each copy writes, [copy, cell]."""
        return np.asarray(self.cell[:, None] + np.arange(self.cells))


class RememberedAccesses(Protocol):
    """The last writer of each cell of shared memory."""

    def rewrite(self, gid: Array, cells: Array, line: int) -> None: ...  # cells count as written now

    # The trap for an access before a copy completes.
    def early(self, mine: int, cell: int, does: str, theirs: int, line: int) -> Trap: ...


class CopiesInFlight:
    """``_flying``, by cell: 0, or 1 + thread and line (in one integer) of the copy that is in flight to it."""

    def __init__(self, races: RememberedAccesses, lanes: int, cells: int) -> None:
        self._races = races
        self._committed = np.zeros(lanes, np.int64)  # number of commit groups so far, by lane
        self._complete = np.zeros(lanes, np.int64)  # number of commit groups that have been waited for, by lane
        self._flying = np.zeros(cells, np.int64)
        self._batches: list[_Batch] = []

    def issue(self, g: Group, index: Array, cells: int, line: int) -> None:
        """Starts the copies of ``g`` to ``index``, in units of ``cells`` cells."""
        slots = np.full(g.n, _NEVER)
        batch = _Batch(g.gid, index * cells, cells, self._committed[g.gid], line, slots, slots)
        self._flying[batch.all_cells()] = (g.gid << _LINE_BITS | line)[:, None] + 1
        self._batches.append(batch)

    def commit(self, g: Group) -> None:
        self._committed[g.gid] += 1

    def wait(self, g: Group, pending: int) -> None:
        """Completes all but the last ``pending`` groups of each thread of ``g``."""
        self._complete[g.gid] = np.maximum(self._complete[g.gid], self._committed[g.gid] - pending)
        self._land(lambda batch: batch.group < self._complete[batch.gid])

    def signal(self, g: Group, slot: Array, phase: Array) -> None:
        """The copies that the threads of ``g`` have issued so far complete on the mbarriers at ``slot``, in their
        current ``phase``."""
        lanes = np.full(len(self._committed), _NEVER)
        lanes[g.gid] = np.arange(g.n)
        for batch in self._batches:
            mine = np.flatnonzero((lanes[batch.gid] >= 0) & (batch.slot == _NEVER))
            if len(mine):
                batch.slot, batch.phase = batch.slot.copy(), batch.phase.copy()
                batch.slot[mine] = slot[lanes[batch.gid[mine]]]
                batch.phase[mine] = phase[lanes[batch.gid[mine]]]
                part = batch.where(mine)
                self._races.rewrite(part.gid, part.all_cells(), part.line)

    def observe(self, slot: Array, phase: Array) -> None:
        """Completes the copies of earlier phases: a wait has seen the mbarriers at ``slot`` in ``phase``."""
        if self._batches:
            seen = dict(zip(slot.tolist(), phase.tolist(), strict=True))
            now = np.vectorize(lambda s: seen.get(s, _NEVER), otypes=[np.int64])
            self._land(lambda batch: (batch.slot != _NEVER) & (batch.phase < now(batch.slot)), signalled=True)

    def _land(self, complete: Callable[[_Batch], Array], signalled: bool = False) -> None:
        kept = []
        for batch in self._batches:
            done = complete(batch)
            if done.any():
                landed = batch.where(done)
                self._flying[landed.all_cells()] = 0
                if not signalled:
                    self._races.rewrite(landed.gid, landed.all_cells(), landed.line)
            if not done.all():
                kept.append(batch.where(~done))
        self._batches = kept

    def check(self, g: Group, index: Array, cells: int, does: str) -> None:
        """Traps if a copy in flight writes one of the cells."""
        if not self._batches:
            return
        found = self._flying.reshape(-1, cells)[index]
        if found.any():
            lane, cell = (int(v[0]) for v in np.nonzero(found))
            raise self._early(int(g.gid[lane]), int(index[lane]) * cells + cell, does)

    def check_cells(self, gid: int, cells: Array, does: str) -> None:
        """As :meth:`check`, for an asynchronous access of thread ``gid`` to ``cells``."""
        if self._batches and (found := np.flatnonzero(self._flying[cells])).size:
            raise self._early(gid, int(cells[found[0]]), does)

    def _early(self, gid: int, cell: int, does: str) -> Trap:
        past = int(self._flying[cell]) - 1
        return self._races.early(gid, cell, does, past >> _LINE_BITS, past & (1 << _LINE_BITS) - 1)

"""Races in shared memory: two unordered accesses to a byte, at least one of them a write.

PTX ISA 8.7.1 "Races" and 9.7.13.1 (a barrier orders accesses of its participants before and after it). Barriers,
cluster barriers and mbarriers order warps through their :mod:`vector_clock`; so do releases and acquires
(:mod:`causality`). Any warp-wide instruction orders lanes of one warp (9.7.13.2 bar.warp.sync and others). For each
cell the last writer and two unordered readers are recorded: the last, and the one before or, with interleaved warps,
the first. This finds every race of a write with one or two readers; a race with three readers is found either in
lockstep or with interleaved warps, and one with more may be missed. A write of the same value is no race.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.ptx.traits import CLUSTER, CTA, WEAK, Ordering, ordering
from cutegen_lab.emulator.ptx.types import RAW, Array
from cutegen_lab.emulator.races.causality import Left
from cutegen_lab.emulator.races.cp_async import CopiesInFlight
from cutegen_lab.emulator.races.vector_clock import VectorClocks
from cutegen_lab.emulator.races.watched import WatchedBlocks
from cutegen_lab.emulator.roles import GeneratedCode, Group

# An access in 63 bits: line of generated code, thread in its cluster, 1 + scope of a strong operation (0: a weak one),
# clock of its warp. 0: no access. A thread number divided by 32 is a column of the clocks; the async proxy
# (:mod:`async_proxy`) has columns too.
_THREAD, _SCOPE, _COUNT = 20, 37, 39
_LINE_MASK, _THREAD_MASK = (1 << 20) - 1, (1 << 17) - 1
_WARP = _THREAD + 5
_COLUMN = (_THREAD_MASK >> 5) << _WARP


class SharedRaces:
    """Records the accesses to the shared memory of a CTA batch. ``read``, ``write`` and ``update`` raise Trap."""

    def __init__(self, ctas: WatchedBlocks, clocks: VectorClocks) -> None:
        self._ctas, self._clocks = ctas, clocks
        self.unit = ctas.program.access_unit
        self._keeps_late = not ctas.warps_seed
        cells = len(ctas.shared.data) // self.unit
        self.writer, self.reader, self.other = (np.zeros(cells, np.int64) for _ in range(3))
        self._left: Left = {}
        self.copies = CopiesInFlight(self, len(clocks.own) * 32, cells)

    def read(self, g: Group, index: Array, width: int) -> None:
        """Checks and records a read of ``width`` bytes; called before it. ``index`` is in units of ``width``."""
        stamp, order = self._stamp(g)
        if order.strong and self._ctas.causality is not None:
            self._ctas.causality.read(self._left, g.gid, index * width, order)
        k = width // self.unit
        self.copies.check(g, index, k, "reads")
        writer, reader, other = (table.reshape(-1, k) for table in (self.writer, self.reader, self.other))
        written, last, first, known = writer[index], reader[index], other[index], self._known(g)
        kept = stamp
        if not self._all_over(known, written, last, first):
            self._trap(g, index, width, self._racing(g, known, written, order), written, "reads", "wrote")
            for found in (first, last) if self._keeps_late else (last, first):
                if (race := self._racing(g, known, found)).any():
                    kept = np.where(race, found, kept)
        other[index[::-1]] = kept[::-1]  # of lanes that read the same cell, this keeps the first
        reader[index] = stamp  # of lanes that read the same cell, this keeps the last

    def write(self, g: Group, index: Array, width: int, value: Array) -> None:
        """Checks and records a write, and stores ``value``."""
        stamp, order = self._stamp(g)
        cells, k = self._ctas.shared.views[width], width // self.unit
        new = np.ascontiguousarray(np.broadcast_to(value, index.shape).astype(cells.dtype, copy=False))
        self._check_write(g, index, width, order, differs(cells[index], new, k))
        cells[index] = new
        self._record(index, k, stamp)
        lost, writer = differs(cells[index], new, k), self.writer.reshape(-1, k)[index]
        if lost.any() and not order.strong:
            apart = columns(writer) != self._clocks.own[g.gid >> 5][:, None]
            self._trap(g, index, width, lost & apart, writer, "writes", "wrote something else at the same time")
        if order.strong and self._ctas.causality is not None:
            self._ctas.causality.write(self._left, g.gid, index * width, order)

    def copy(self, g: Group, index: Array, width: int, value: Array) -> None:
        """Stores ``value`` for an asynchronous copy, which is in flight until it is waited for."""
        self.write(g, index, width, value)
        self.copies.issue(g, index, width // self.unit, generated_line(self._ctas.program))

    def update(self, g: Group, index: Array, width: int) -> None:
        """Checks and records an atomic operation; called before it is performed."""
        stamp, order = self._stamp(g)
        k = width // self.unit
        if self._ctas.causality is not None:
            self._ctas.causality.update(self._left, g.gid, index * width, order)
        self._check_write(g, index, width, order, np.ones((len(index), k), np.bool_))
        self._record(index, k, stamp)
        last = self.writer.reshape(-1, k)[index]  # the last of the lanes that access one cell
        if (last != stamp).any():
            self._trap(
                g, index, width, self._racing(g, self._known(g), last, order) & (last != stamp), last, "writes", "wrote"
            )

    def warp_sync(self, g: Group) -> None:
        """A warp-wide instruction of all lanes orders their earlier accesses."""
        self._clocks.meet_all(np.unique(g.gid >> 5))

    def members_sync(self, g: Group, members: Array, running: Array) -> None:
        """As :meth:`warp_sync`, for the lanes of a member mask (by lane of ``g``); ``running``: lanes of each warp."""
        warps = g.gid >> 5
        if ((members & running) == running).all():
            self.warp_sync(g)
            return
        for warp, mask, alive in sorted(set(zip(warps.tolist(), members.tolist(), running.tolist(), strict=True))):
            named = np.flatnonzero(mask >> np.arange(32) & 1)
            self._clocks.meet(warp, None if mask & alive == alive else named)

    def _check_write(self, g: Group, index: Array, width: int, order: Ordering, changed: Array) -> None:
        k = width // self.unit
        known = self._known(g)
        self.copies.check(g, index, k, "writes")
        tables = (self.writer, "wrote"), (self.reader, "read"), (self.other, "read")
        past = [(table.reshape(-1, k)[index], did) for table, did in tables]
        if self._all_over(known, *(found for found, _ in past)):
            return
        for found, did in past:
            self._trap(g, index, width, self._racing(g, known, found, order) & changed, found, "writes", did)

    def _record(self, index: Array, k: int, stamp: Array) -> None:
        self.writer.reshape(-1, k)[index] = stamp
        self.reader.reshape(-1, k)[index] = 0
        self.other.reshape(-1, k)[index] = 0

    def rewrite(self, gid: Array, cells: Array, line: int) -> None:
        """Records ``cells`` [thread, cell] as written now, by the copies that threads issued at ``line``."""
        thread = gid % (self._clocks.size * 32)
        self.writer[cells] = (self._clocks.now(gid >> 5) << _COUNT | thread << _THREAD | line)[:, None]

    def early(self, mine: int, cell: int, does: str, theirs: int, line: int) -> Trap:
        """The trap for an access of thread ``mine`` to bytes that a copy of thread ``theirs``, issued at ``line``,
        writes."""
        shared = self._ctas.shared
        at = cell * self.unit % shared.stride
        who = "its own" if theirs == mine else f"thread {self._ctas.place(theirs)[1]}'s"
        where = f"byte {at - shared.first} of shared memory"
        message = f"a race: {does} {where} before {who} asynchronous copy has completed"
        trap = Trap(Verdict.NON_DETERMINISTIC, message, mine, at)
        trap.earlier = self._ctas.program.source_map.get(line)
        return trap

    def _known(self, g: Group) -> Array | None:
        """A bound [lanes, 1]: records below it, of warps of the cluster, are ordered before the lane. A fast path for
        accesses after a barrier; None if the clocks of single lanes must be consulted."""
        counts = self._clocks.known_to_all(g.warp_numbers())
        if counts is None:
            return None
        by_lane = np.repeat(counts, 32) if g.whole() else counts[np.searchsorted(g.warp_numbers(), g.gid >> 5)]
        return (by_lane + 1 << _COUNT)[:, None]

    def _all_over(self, known: Array | None, a: Array, b: Array, c: Array) -> bool:
        """Fast path: True only if accesses ``a``, ``b`` and ``c`` [lanes, cells] are all ordered before this one.
        ``known`` is :meth:`_known`."""
        if known is None or not (np.maximum(np.maximum(a, b), c) < known).all():
            return False
        return bool(((a | b | c) & _COLUMN < self._clocks.size << _WARP).all())

    def _racing(self, g: Group, known: Array | None, found: Array, order: Ordering = WEAK) -> Array:
        """Mask of the accesses ``found`` [lanes, cells] that race with the lane's current one. Two strong accesses
        do not race if each one's scope includes both threads. The mask has one column if all columns are equal.
        ``known`` is :meth:`_known`."""
        if found.shape[1] > 1 and (found == found[:, :1]).all():
            found = found[:, :1]
        if known is not None and (found < known).all() and (found & _COLUMN < self._clocks.size << _WARP).all():
            return np.zeros((1, 1), np.bool_)
        if not np.maximum.reduce(found, axis=None, initial=0):
            return np.zeros((1, 1), np.bool_)
        warp, mine = (g.gid >> 5)[:, None], (g.gid % (self._clocks.size * 32))[:, None]
        thread, count = found >> _THREAD & _THREAD_MASK, found >> _COUNT
        late = self._clocks.unknown(g.gid[:, None], thread >> 5, thread & 31, count)
        late |= (thread >> 5 == mine >> 5) & self._clocks.lanes.unmet(warp, mine & 31, thread & 31, count)
        if order.strong:
            warps = self._clocks.warps
            needed = np.where((thread >> 5) // warps == (mine >> 5) // warps, CTA, CLUSTER)
            late &= np.minimum(found >> _SCOPE & 3, order.scope + 1) <= needed
        return late

    def _stamp(self, g: Group) -> tuple[Array, Ordering]:
        """(record of this access [lanes, 1], its ordering)."""
        line = generated_line(self._ctas.program)
        order = order_at(self._ctas.program, line)
        thread = g.gid % (self._clocks.size * 32)
        scope = order.scope + 1 if order.strong else 0
        stamp = self._clocks.now(g.gid >> 5) << _COUNT | scope << _SCOPE | thread << _THREAD | line
        return stamp[:, None], order

    def _trap(self, g: Group, index: Array, width: int, race: Array, found: Array, does: str, did: str) -> None:
        if race.any():
            lane, cell = (int(v[0]) for v in np.nonzero(race))
            at = int(index[lane]) * width + cell * self.unit
            raise self.trap(int(g.gid[lane]), at, int(found[lane, cell]), does, did)

    def trap(self, gid: int, at: int, past: int, does: str, did: str) -> Trap:
        """The trap for thread ``gid``'s access to byte ``at`` of shared memory, which races with ``past``."""
        shared, thread = self._ctas.shared, past >> _THREAD & _THREAD_MASK
        byte = at % shared.stride - shared.first
        if thread >> 5 < self._clocks.size:
            theirs = gid // (self._clocks.size * 32) * self._clocks.size * 32 + thread
            (my_block, _), (their_block, xyz) = self._ctas.place(gid), self._ctas.place(theirs)
            who = f"thread {xyz}" + (f" of block {their_block}" if their_block != my_block else "")
            message = f"a race: {does} byte {byte} of shared memory, which {who} {did} with no barrier between"
        else:
            doing = {"wrote": "writes", "read": "reads"}.get(did, did)
            what = self._clocks.hardware(thread >> 5)
            message = f"a race: {does} byte {byte} of shared memory, which {what} {doing} with no wait for it between"
        trap = Trap(Verdict.NON_DETERMINISTIC, message, gid, at % shared.stride)
        trap.earlier = self.source(past)
        return trap

    def source(self, past: int) -> ptx.Instruction | None:
        return self._ctas.program.source_map.get(past & _LINE_MASK)


def stamp(column: int, lane: int, count: int, line: int) -> int:
    """The record of a weak access."""
    return count << _COUNT | (column << 5 | lane) << _THREAD | line


def columns(found: Array) -> Array:
    return found >> _WARP & _THREAD_MASK >> 5


def lanes(found: Array) -> Array:
    return found >> _THREAD & 31


def counts(found: Array) -> Array:
    return found >> _COUNT


def differs(old: Array, new: Array, k: int) -> Array:
    """Which of the ``k`` cells of each element differ [lanes, k]."""
    unit: Any = RAW[old.itemsize // k]
    return np.asarray(old.view(unit).reshape(-1, k) != new.view(unit).reshape(-1, k))


def order_at(program: GeneratedCode, line: int) -> Ordering:
    """Ordering of the instruction at ``line`` of the generated code."""
    instruction = program.source_map.get(line)
    return WEAK if instruction is None else ordering(instruction)


def generated_line(program: GeneratedCode) -> int:
    """Line of the generated code that is being executed."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename != program.file_name:
        frame = frame.f_back
    return min(frame.f_lineno, _LINE_MASK)

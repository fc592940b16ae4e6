"""Races of the async proxy: bulk copies, and wgmma reading shared memory.

Such an access happens at any time between the instruction that issues it and the wait for it. So it is recorded (in the
tables of :mod:`shared_memory`) under a column of the clocks that is not a warp's. A warp's entry in that column rises
when the warp waits for the phase of the mbarrier, the bulk group or the wgmma group, or synchronises with a warp that
has waited. Generic writes of warps must also be ordered by a proxy fence (PTX ISA 8.4 "Proxies", 9.7.13.4
fence.proxy.async).
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.bulk_groups import BulkGroups
from cutegen_lab.emulator.races.lane_clock import EVERY
from cutegen_lab.emulator.races.shared_memory import SharedRaces, columns, counts, generated_line, lanes, stamp
from cutegen_lab.emulator.races.vector_clock import MBARRIERS, VectorClocks
from cutegen_lab.emulator.races.watched import WatchedBlocks
from cutegen_lab.emulator.roles import Group

_PIECE = 16


class AsyncProxyRaces:
    """Every method except the waits may raise Trap. Places are 16-byte pieces of the CTA batch's shared memory."""

    def __init__(self, ctas: WatchedBlocks, clocks: VectorClocks, shared: SharedRaces) -> None:
        self._ctas, self._clocks, self._shared = ctas, clocks, shared
        self._columns: dict[int, int] = {}  # column of each mbarrier slot
        self._made: dict[int, int] = {}  # by slot: the access that initialised an mbarrier
        self._waits: dict[int, dict[int, int]] = {}  # by slot and column: a warp's last wait for a phase
        # By block and column of the clocks: time and line of the last access to the block's memory by another block or
        # a copy.
        self._uses, self._lines = (np.zeros((ctas.count, clocks.width), np.int64) for _ in range(2))
        self._used = np.zeros(ctas.count // ctas.cluster_size, np.int64)
        self.groups = BulkGroups(clocks)

    def column(self, slot: int) -> int:
        """The column of the clocks for an mbarrier."""
        found = self._columns.get(slot)
        if found is None:
            cluster = slot * 8 // self._ctas.shared.stride // self._ctas.cluster_size
            if self._used[cluster] >= MBARRIERS * self._ctas.cluster_size:
                message = f"the emulator detects no races in blocks with more than {MBARRIERS} mbarriers"
                raise Trap(Verdict.UNSUPPORTED, message)
            found = self._columns[slot] = self._clocks.landing + int(self._used[cluster])
            self._used[cluster] += 1
        return found

    def completion(self, slots: Array) -> tuple[Array, Array]:
        """(column, phase count) by lane: the end of the current phase of the mbarriers ``slots``."""
        return np.array([self.column(slot) for slot in slots.tolist()]), self._ctas.mbarriers.age[slots] + 1

    def lands(self, gid: int, place: Array, slot: int) -> None:
        """Checks and records a bulk copy that will write ``place`` and complete on mbarrier ``slot``."""
        cells, known = self._cells(place), self._known(gid, 1)
        self._check(gid, cells, known, writes=True)
        mark = stamp(self.column(slot), 0, int(self._ctas.mbarriers.age[slot]) + 1, generated_line(self._ctas.program))
        self._shared.writer[cells] = mark
        self._shared.reader[cells] = 0
        self._shared.other[cells] = 0

    def stores(self, index: Array, width: int, slots: Array) -> None:
        """Records the writes of an st.async of ``width`` bytes at ``index``. They complete with the current phase of
        the mbarriers ``slots``, and nothing else orders them."""
        k, line = width // self._shared.unit, generated_line(self._ctas.program)
        for at, slot in zip(index.tolist(), slots.tolist(), strict=True):
            mark = stamp(self.column(slot), 0, int(self._ctas.mbarriers.age[slot]) + 1, line)
            self._shared.writer[at * k : (at + 1) * k] = mark

    def leaves(self, gid: int, place: Array, slot: int | None) -> None:
        """Checks and records a bulk copy that will read ``place``. It completes with its bulk group, or with the
        current phase of mbarrier ``slot``."""
        cells, known, warp = self._cells(place), self._known(gid, 1), gid >> 5
        self._check(gid, cells, known, writes=False)
        if slot is not None:
            column, count = self.column(slot), int(self._ctas.mbarriers.age[slot]) + 1
        else:
            column, count = self._clocks.bulk + int(self._clocks.own[warp]), self.groups.filling(gid)
        self._read(cells, known, column, count)
        self._note(int(place[0]) * _PIECE // self._ctas.shared.stride, column, count)

    def waited(self, gid: int, slot: int) -> None:
        """Records that thread ``gid`` has seen the end of a phase of the mbarrier at ``slot``."""
        own = int(self._clocks.own[gid >> 5])
        wait = stamp(own, gid & 31, int(self._clocks.known[gid >> 5, own]), generated_line(self._ctas.program))
        self._waits.setdefault(slot, {})[own] = wait

    def ends_barriers(self, g: Group, slots: Array) -> None:
        """Traps if another warp may still wait on one of the mbarriers ``slots`` (by lane), which are initialised again
        or invalidated."""
        for gid, slot in zip(g.gid.tolist(), slots.tolist(), strict=True):
            known, own = self._clocks.row(gid), int(self._clocks.own[gid >> 5])
            for column, wait in self._waits.pop(slot, {}).items():
                if column != own and known[column] < counts(np.array(wait)):
                    raise self._shared.trap(gid, slot * 8, wait, "ends the mbarrier at", "waited for")

    def init_barriers(self, g: Group, slots: Array) -> None:
        """Checks (:meth:`ends_barriers`) and records that mbarriers are initialised at ``slots``, by lane."""
        self.ends_barriers(g, slots)
        line = generated_line(self._ctas.program)
        for gid, slot in zip(g.gid.tolist(), slots.tolist(), strict=True):
            own = int(self._clocks.own[gid >> 5])
            self._made[slot] = stamp(own, gid & 31, int(self._clocks.known[gid >> 5, own]), line)

    def uses_barrier(self, gid: int, slot: int, hardware: bool = False) -> None:
        """Traps if thread ``gid``, or a copy that it issues (``hardware``), may not use the mbarrier at ``slot``: its
        initialisation must be ordered before. For a copy a fence must follow the initialisation (PTX ISA 9.7.13.4
        fence.mbarrier_init, fence.proxy.async; a cluster barrier counts as one).
        """
        made, known = np.array([self._made.get(slot, 0)]), self._clocks.row(gid)
        column, count = int(columns(made)[0]), int(counts(made)[0])
        fenced = known[self._clocks.made + column] >= count
        late = known[column] < count or (column == self._clocks.own[gid >> 5] and self._unsynced(gid, made)[0])
        if late and not fenced:
            raise self._shared.trap(gid, slot * 8, int(made[0]), "uses the mbarrier at", "initialised")
        if hardware and not fenced and known[self._clocks.fenced + column] < count:
            byte = slot * 8 % self._ctas.shared.stride
            message = (
                f"issues a copy to complete on the mbarrier at byte {byte - self._ctas.shared.first} of shared memory, "
                "with no fence.mbarrier_init or fence.proxy.async after its initialisation"
            )
            trap = Trap(Verdict.NON_DETERMINISTIC, message, gid, byte)
            trap.earlier = self._shared.source(int(made[0]))
            raise trap

    def reaches(self, gid: int, block: int) -> None:
        """Checks and records that thread ``gid`` accesses the shared memory of another block, which must have started
        and may not end before the access."""
        first = block % self._ctas.cluster_size * self._clocks.warps
        its = slice(first, first + self._clocks.warps)
        home = gid // self._ctas.padded_threads
        if not self._clocks.row(gid)[its].any() and not self._ctas.cluster_barrier.over[home, its].any():
            message = (
                f"accesses the shared memory of block rank {block % self._ctas.cluster_size} of its cluster, which may "
                "not have started: barrier.cluster.arrive and .wait must come first"
            )
            raise Trap(Verdict.NON_DETERMINISTIC, message, gid)
        own = int(self._clocks.own[gid >> 5])
        self._note(block, own, int(self._clocks.known[gid >> 5, own]))

    def _note(self, block: int, column: int, count: int) -> None:
        self._uses[block, column] = count
        self._lines[block, column] = generated_line(self._ctas.program)

    def exit(self, g: Group) -> None:
        """Threads exit. Once all threads of a block have exited, all copies and accesses of other blocks to its shared
        memory must be complete.
        """
        for block in np.unique(g.block).tolist():
            threads = slice(block * self._ctas.padded_threads, (block + 1) * self._ctas.padded_threads)
            if self._ctas.exited[threads].all():
                self._ctas.bulk.exit(block)
                self._exit(block, int(g.gid[g.block == block][0]))

    def _exit(self, block: int, gid: int) -> None:
        warps = slice(block * self._clocks.warps, (block + 1) * self._clocks.warps)
        known = np.maximum.reduce([self._clocks.lanes.row(warp, EVERY) for warp in range(warps.start, warps.stop)])
        if self._ctas.cluster_size > 1:
            known = np.maximum(known, self._ctas.cluster_barrier.over[block])
        late = np.flatnonzero(known < self._uses[block])
        if len(late):
            column = int(late[0])
            if column < self._clocks.size:
                first = gid // (self._clocks.size * 32) * self._clocks.size * 32
                other = self._ctas.place(first + column * 32)[0]
                message = f"a block ends while block {other} may still access its shared memory: no barrier orders them"
            else:
                message = "a block ends while a bulk copy may still read its shared memory: the copy was not waited for"
            trap = Trap(Verdict.NON_DETERMINISTIC, message, gid)
            trap.instruction = self._ctas.program.source_map.get(int(self._lines[block, column]))
            raise trap

    def product_reads(self, gid: int, place: Array, group: int) -> None:
        """Checks and records a wgmma, of the warpgroup that begins with thread ``gid``, that will read ``place``."""
        cells, known = self._cells(place), self._known(gid, 4)
        self._check(gid, cells, known, writes=False)
        self._read(cells, known, self._clocks.products + int(self._clocks.own[gid >> 5]), group)

    def products_done(self, warps: Array, done: Array) -> None:
        """``warps`` (distinct) have waited for their first ``done`` wgmma groups."""
        leader = warps - warps % self._clocks.warps % 4
        at = self._clocks.products + self._clocks.own[leader]
        self._clocks.known[warps, at] = np.maximum(self._clocks.known[warps, at], done)

    def _known(self, gid: int, warps: int) -> Array:
        """The clock of thread ``gid``; if ``warps`` is above 1, the minimum over that many warps, the thread's
        first."""
        if warps == 1:
            return self._clocks.row(gid)
        return np.asarray(self._clocks.known[gid >> 5 : (gid >> 5) + warps].min(axis=0))

    def _cells(self, place: Array) -> Array:
        k = _PIECE // self._shared.unit
        return np.asarray((place[:, None] * k + np.arange(k)).ravel())

    def _check(self, gid: int, cells: Array, known: Array, *, writes: bool) -> None:
        does = "writes" if writes else "reads"
        self._shared.copies.check_cells(gid, cells, does)
        tables = [(self._shared.writer, "wrote")]
        if writes:
            tables += [(self._shared.reader, "read"), (self._shared.other, "read")]
        for table, did in tables:
            found = table[cells]
            if not found.any():
                continue
            column, count = columns(found), counts(found)
            late = self._clocks.late(np.array(gid), known[column], column, lanes(found), count)
            late |= (column == self._clocks.own[gid >> 5]) & self._unsynced(gid, found)
            if late.any():
                at = int(np.flatnonzero(late)[0])
                raise self._shared.trap(gid, int(cells[at]) * self._shared.unit, int(found[at]), does, did)
            if did == "wrote":
                self._proxy(gid, cells, known, found, does)

    def _unsynced(self, gid: int, found: Array) -> Array:
        """True for the accesses ``found`` of other lanes of the warp of ``gid`` that are after these lanes last
        synchronised."""
        return self._clocks.lanes.unmet(np.array([gid >> 5]), np.array([gid & 31]), lanes(found), counts(found))

    def _proxy(self, gid: int, cells: Array, known: Array, found: Array, does: str) -> None:
        generic = (columns(found) < self._clocks.size) & (found != 0)
        if not generic.any():
            return
        at = np.where(generic, columns(found), 0)
        seen = known[self._clocks.fenced + at]
        bare = generic & self._clocks.late(np.array(gid), seen, at, lanes(found), counts(found), fenced=True)
        if bare.any():
            first = int(np.flatnonzero(bare)[0])
            byte = int(cells[first]) * self._shared.unit % self._ctas.shared.stride
            message = (
                f"{does} byte {byte - self._ctas.shared.first} of shared memory through the async proxy, with no "
                "fence.proxy.async after the write to it"
            )
            trap = Trap(Verdict.NON_DETERMINISTIC, message, gid, byte)
            trap.earlier = self._shared.source(int(found[first]))
            raise trap

    def _read(self, cells: Array, known: Array, column: int, group: int) -> None:
        mark = stamp(column, 0, group, generated_line(self._ctas.program))
        last, first = self._shared.reader[cells], self._shared.other[cells]
        kept = np.where(known[columns(first)] < counts(first), first, mark)
        self._shared.other[cells] = np.where(known[columns(last)] < counts(last), last, kept)
        self._shared.reader[cells] = mark

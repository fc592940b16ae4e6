"""Named barriers and cluster barriers (mbarriers: :mod:`mbarriers`).

PTX ISA 9.7.13.1 (bar, barrier), 9.7.13.3 (barrier.cluster). Each ``wait`` returns by lane whether it may continue; the
scheduler parks the others and polls again.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.machine.lane_group import LaneGroup
from cutegen_lab.emulator.ptx.traits import CLUSTER
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.lane_clock import EVERY
from cutegen_lab.emulator.races.vector_clock import Meetings, VectorClocks

NAMED = 16


class NamedBarriers:
    """The 16 barriers of each block. ``need``: expected threads; 0 for all that have not exited."""

    def __init__(self, blocks: int, threads: int) -> None:
        self._threads = threads
        self._count = np.zeros((blocks, NAMED), np.int64)
        self._need = np.zeros((blocks, NAMED), np.int64)
        self._generation = np.zeros((blocks, NAMED), np.int64)
        self._exited = np.zeros(blocks, np.int64)
        self._true = np.zeros((blocks, NAMED), np.int64)  # arrived threads whose predicate is true
        self._outcome = np.zeros((blocks, NAMED, 2, 2), np.int64)  # outcomes of the last two generations: (true, all)
        self._clocks: VectorClocks | None = None

    def arrive(
        self, g: LaneGroup, barrier: Array, need: Array | int, waits: bool = False, whole: bool = False,
        voted: bool = False,
    ) -> None:  # fmt: skip
        """``whole``: traps if lanes of a warp name different barriers. ``voted``: arrivals are counted by thread, not
        by warp."""
        number = np.broadcast_to(np.asarray(barrier, np.int64), (g.n,))
        wanted = np.broadcast_to(np.asarray(need, np.int64), (g.n,))
        if int(number.max()) >= NAMED:
            raise Trap(Verdict.LAUNCH_FAILURE, f"barrier {int(number.max())}: a block has {NAMED}", int(g.gid[0]))
        if (wanted & 31).any():
            raise Trap(
                Verdict.LAUNCH_FAILURE, f"barrier for {int(wanted.max())} threads, not a multiple of 32", int(g.gid[0])
            )
        if whole and np.ndim(barrier) + np.ndim(need):
            self._require_one(g, number, wanted)
        self._meet(g, number, waits)
        np.add.at(self._count, (g.block, number), 1)
        if not voted and wanted.any() and not g.whole():
            self._count_whole_warps(g, number, wanted)
        self._need[g.block, number] = wanted
        over = np.flatnonzero((wanted > 0) & (self._count[g.block, number] > wanted))
        if len(over):
            lane = int(over[0])
            message = f"more threads arrived at barrier {int(number[lane])} than its count of {int(wanted[lane])}"
            raise Trap(Verdict.BARRIER_DIVERGENCE, message, int(g.gid[lane]))
        self._complete()

    def wait(
        self, g: LaneGroup, barrier: Array, need: Array | int, whole: bool = True, votes: Array | None = None
    ) -> Array:
        """Arrives once, then returns by lane whether the barrier has opened. ``whole``: only whole warps may arrive."""
        number = np.broadcast_to(np.asarray(barrier, np.int64), (g.n,))
        if not g.arrived:
            if whole:
                g.ctas.require_whole_warps(g, "a barrier")
            if votes is not None:
                np.add.at(self._true, (g.block, np.minimum(number, NAMED - 1)), np.broadcast_to(votes, (g.n,)))
            before = self._generation[g.block, np.minimum(number, NAMED - 1)]
            self.arrive(g, barrier, need, waits=True, whole=whole, voted=votes is not None)
            g.gen, g.arrived = before, True
        return np.asarray(self._generation[g.block, number] != g.gen)

    def outcome(self, g: LaneGroup, barrier: Array, what: str) -> Array:
        """``what`` (popc, and, or) of the predicates of the generation for which the threads of ``g`` waited."""
        number = np.broadcast_to(np.asarray(barrier, np.int64), (g.n,))
        assert g.gen is not None
        true, every = self._outcome[g.block, number, g.gen & 1].T
        return np.asarray({"popc": true, "and": true == every, "or": true > 0}[what])

    def exit(self, g: LaneGroup) -> None:
        np.add.at(self._exited, g.block, 1)
        if self._clocks is not None:
            warps = np.unique(g.gid >> 5)
            self._gone.leave(warps, warps // self._clocks.warps)
        if self._count.any():
            self._complete()

    def follow(self, clocks: VectorClocks) -> None:
        """Makes the barriers order the warps that they synchronise."""
        blocks = len(self._exited)
        self._clocks, self._arrived = clocks, Meetings(clocks, blocks, NAMED)
        self._gone = Meetings(clocks, blocks)
        self._waiting = np.zeros((blocks, NAMED, clocks.warps), np.bool_)
        # Each warp's own clock at its arrival, in the current and in the last completed generation.
        self._coming, self._met = (np.zeros((blocks, NAMED, clocks.warps), np.int64) for _ in range(2))

    def _count_whole_warps(self, g: LaneGroup, number: Array, wanted: Array) -> None:
        """At a barrier with a thread count, an arrived warp counts as 32 threads, even if fewer run."""
        _, here, running = g.ctas.attendance(g)
        _, first = np.unique(g.gid >> 5, return_index=True)
        some = (here == running) & (wanted[first] > 0)
        np.add.at(self._count, (g.block[first][some], number[first][some]), 32 - running[some])

    @staticmethod
    def _require_one(g: LaneGroup, number: Array, wanted: Array) -> None:
        """Raises Trap if lanes of one warp name several barriers, or several thread counts for one barrier."""
        warps, first = np.unique(g.gid >> 5, return_index=True)
        of = first[np.searchsorted(warps, g.gid >> 5)]
        other = np.flatnonzero((number != number[of]) | (wanted != wanted[of]))
        if len(other):
            lane = int(other[0])
            numbers = f"{int(number[of[lane]])} and {int(number[lane])}"
            message = f"lanes of one warp are at barriers {numbers}, or give different counts of threads"
            raise Trap(Verdict.BARRIER_DIVERGENCE, message, int(g.gid[lane]))

    def _meet(self, g: LaneGroup, number: Array, waits: bool) -> None:
        if self._clocks is not None:
            warps, lanes = np.unique(g.gid >> 5, return_index=True)
            block, which = g.block[lanes], number[lanes]
            self._require_order(warps, block, which)
            self._coming[block, which, warps % self._clocks.warps] = self._clocks.now(warps)
            self._arrived.leave(warps, block, which)
            self._waiting[block, which, warps % self._clocks.warps] = waits

    def _require_order(self, warps: Array, block: Array, number: Array) -> None:
        """Traps for an arrival that is not ordered after all arrivals of the last generation: hardware could count it
        in that generation."""
        assert self._clocks is not None
        size, last = self._clocks.warps, self._met[block, number]
        first = self._clocks.own[warps] // size * size
        known = self._clocks.known[warps[:, None], first[:, None] + np.arange(size)]
        if not self._clocks.lanes.even:
            rows = np.stack([self._clocks.lanes.row(warp, EVERY) for warp in warps.tolist()])
            known = rows[np.arange(len(warps))[:, None], first[:, None] + np.arange(size)]
        early = known < last
        if early.any():
            at, other = (int(v[0]) for v in np.nonzero(early))
            message = (
                f"arrives at barrier {int(number[at])} with no order after warp {other}'s last arrival there: it may "
                "be counted in that earlier phase"
            )
            raise Trap(Verdict.BARRIER_DIVERGENCE, message, int(warps[at]) * 32)

    def _open(self, done: Array) -> None:
        if self._clocks is None:
            return
        block, number, warp = np.nonzero(self._waiting & done[:, :, None])
        self._arrived.take(block * self._clocks.warps + warp, block, number)
        every = self._need[block, number] == 0  # with a thread count, exited threads do not take part
        self._gone.take((block * self._clocks.warps + warp)[every], block[every])
        self._waiting[done] = False
        self._met[done], self._coming[done] = self._coming[done], 0
        self._arrived.rows[done] = 0

    def _complete(self) -> None:
        target = np.where(self._need > 0, self._need, (self._threads - self._exited)[:, None])
        done = (self._count > 0) & (self._count >= target)
        if done.any():
            self._open(done)
            block, number = np.nonzero(done)
            met = np.stack([self._true[done], self._count[done]], axis=1)
            self._outcome[block, number, self._generation[done] & 1] = met
            self._true[done] = 0
            self._count[done] = 0
            self._generation[done] += 1


class ClusterBarrier:
    """One barrier per cluster: arrive and wait are separate; every thread that has not exited takes part."""

    def __init__(self, blocks: int, cluster: int, threads: int, padded_threads: int) -> None:
        self._blocks_per_cluster = cluster
        self._threads = threads * cluster
        self._count = np.zeros(blocks // cluster, np.int64)
        self._generation = np.zeros(blocks // cluster, np.int64)
        self._exited = np.zeros(blocks // cluster, np.int64)
        self._expected = np.full(blocks * padded_threads, -1, np.int64)  # by thread: the generation to wait for
        self._clocks: VectorClocks | None = None

    def follow(self, clocks: VectorClocks) -> None:
        """Makes the barrier order the warps that it synchronises."""
        clusters = len(self._exited)
        self._clocks, self._arrived, self._opened = clocks, Meetings(clocks, clusters), Meetings(clocks, clusters)
        # Order without visibility, by block: accesses before a relaxed arrival have ended for blocks that have waited.
        self._came, self._met = Meetings(clocks, clusters), Meetings(clocks, clusters)
        self.over = np.zeros((clusters * self._blocks_per_cluster, clocks.width), np.int64)

    def arrive(self, g: LaneGroup, relaxed: bool = False) -> None:
        """``relaxed``: the arrival orders only accesses before an earlier fence."""
        cluster = g.block // self._blocks_per_cluster
        twice = np.flatnonzero(self._expected[g.gid] >= 0)
        if len(twice):
            message = "a thread arrives at the cluster barrier again before it has waited"
            raise Trap(Verdict.LAUNCH_FAILURE, message, int(g.gid[twice[0]]))
        self._expected[g.gid] = self._generation[cluster]
        self._leave(g, relaxed)
        np.add.at(self._count, cluster, 1)
        self._complete()

    def wait(self, g: LaneGroup) -> Array:
        expected = self._expected[g.gid]
        never = np.flatnonzero(expected < 0)
        if len(never):
            message = "waits at the cluster barrier without having arrived"
            raise Trap(Verdict.LAUNCH_FAILURE, message, int(g.gid[never[0]]))
        passed = self._generation[g.block // self._blocks_per_cluster] != expected
        self._expected[g.gid[passed]] = -1
        if self._clocks is not None:
            warps = np.unique(g.gid[passed] >> 5)
            self._opened.take(warps, warps // self._clocks.size)
            blocks = np.unique(g.block[passed])
            self.over[blocks] = np.maximum(self.over[blocks], self._met.rows[blocks // self._blocks_per_cluster])
        return np.asarray(passed)

    def exit(self, g: LaneGroup) -> None:
        np.add.at(self._exited, g.block // self._blocks_per_cluster, 1)
        self._leave(g)
        if self._count.any():
            self._complete()

    def _leave(self, g: LaneGroup, relaxed: bool = False) -> None:
        if self._clocks is None:
            return
        warps = np.unique(g.gid >> 5)
        clusters = warps // self._clocks.size
        self._came.leave_rows(self._clocks.known[warps], clusters)
        if not relaxed:
            self._clocks.init_fence(warps)
            self._arrived.leave(warps, clusters)
            return
        self._arrived.leave_rows(self._clocks.announced(warps), clusters)
        if g.ctas.causality is not None:
            self._arrived.leave_rows(g.ctas.causality.fenced(warps, CLUSTER), clusters)

    def _complete(self) -> None:
        done = (self._count > 0) & (self._count >= self._threads - self._exited)
        if self._clocks is not None and done.any():
            self._opened.rows[done] = np.maximum(self._opened.rows[done], self._arrived.rows[done])
            self._met.rows[done] = np.maximum(self._met.rows[done], self._came.rows[done])
        self._count[done] = 0
        self._generation[done] += 1

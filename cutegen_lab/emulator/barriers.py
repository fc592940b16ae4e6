"""Where threads wait for each other: named barriers, cluster barriers and mbarrier objects.

PTX ISA 9.7.13.1 (bar, barrier), 9.7.13.4 (barrier.cluster), 9.7.13.15 (mbarrier). Each ``wait`` returns by lane whether
it may go on; the scheduler parks those that may not and asks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.clocks import Clocks, Letters, Meetings
from cutegen_lab.emulator.copies import CopiesInFlight
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.types import Array

if TYPE_CHECKING:
    from cutegen_lab.emulator.async_races import AsyncRaces
    from cutegen_lab.emulator.group import Group

NAMED = 16


class NamedBarriers:
    """The 16 barriers of each block. ``need`` is 0 where every thread that has not exited must come."""

    def __init__(self, blocks: int, threads: int) -> None:
        self._threads = threads
        self._count = np.zeros((blocks, NAMED), np.int64)
        self._need = np.zeros((blocks, NAMED), np.int64)
        self._generation = np.zeros((blocks, NAMED), np.int64)
        self._exited = np.zeros(blocks, np.int64)
        self._clocks: Clocks | None = None

    def arrive(self, g: Group, barrier: Array, need: Array | int, waits: bool = False) -> None:
        number = np.broadcast_to(np.asarray(barrier, np.int64), (g.n,))
        wanted = np.broadcast_to(np.asarray(need, np.int64), (g.n,))
        if int(number.max()) >= NAMED:
            raise Trap(Verdict.LAUNCH_FAILURE, f"barrier {int(number.max())}: a block has {NAMED}", int(g.gid[0]))
        if (wanted & 31).any():
            raise Trap(
                Verdict.LAUNCH_FAILURE, f"barrier for {int(wanted.max())} threads, not a multiple of 32", int(g.gid[0])
            )
        self._meet(g, number, waits)
        np.add.at(self._count, (g.block, number), 1)
        self._need[g.block, number] = wanted
        over = np.flatnonzero((wanted > 0) & (self._count[g.block, number] > wanted))
        if len(over):
            lane = int(over[0])
            message = f"barrier {int(number[lane])} is for {int(wanted[lane])} threads and more came"
            raise Trap(Verdict.BARRIER_DIVERGENCE, message, int(g.gid[lane]))
        self._complete()

    def wait(self, g: Group, barrier: Array, need: Array | int) -> Array:
        """Arrives once, then tells whether the barrier has opened."""
        number = np.broadcast_to(np.asarray(barrier, np.int64), (g.n,))
        if not g.arrived:
            g.m.require_whole_warps(g, "a barrier")
            before = self._generation[g.block, np.minimum(number, NAMED - 1)]
            self.arrive(g, barrier, need, waits=True)
            g.gen, g.arrived = before, True
        return np.asarray(self._generation[g.block, number] != g.gen)

    def exit(self, g: Group) -> None:
        np.add.at(self._exited, g.block, 1)
        if self._clocks is not None:
            warps = np.unique(g.gid >> 5)
            self._gone.leave(warps, warps // self._clocks.warps)
        if self._count.any():
            self._complete()

    def follow(self, clocks: Clocks) -> None:
        """Makes the barriers order the warps that meet."""
        blocks = len(self._exited)
        self._clocks, self._arrived = clocks, Meetings(clocks, blocks, NAMED)
        self._gone = Meetings(clocks, blocks)
        self._waiting = np.zeros((blocks, NAMED, clocks.warps), np.bool_)

    def _meet(self, g: Group, number: Array, waits: bool) -> None:
        if self._clocks is not None:
            warps, lanes = np.unique(g.gid >> 5, return_index=True)
            block = g.block[lanes]
            self._arrived.leave(warps, block, number[lanes])
            self._waiting[block, number[lanes], warps % self._clocks.warps] = waits

    def _open(self, done: Array) -> None:
        if self._clocks is None:
            return
        block, number, warp = np.nonzero(self._waiting & done[:, :, None])
        self._arrived.take(block * self._clocks.warps + warp, block, number)
        self._gone.take(block * self._clocks.warps + warp, block)
        self._waiting[done] = False
        self._arrived.rows[done] = 0

    def _complete(self) -> None:
        target = np.where(self._need > 0, self._need, (self._threads - self._exited)[:, None])
        done = (self._count > 0) & (self._count >= target)
        if done.any():
            self._open(done)
            self._count[done] = 0
            self._generation[done] += 1


class ClusterBarrier:
    """One barrier a cluster: arrive and wait are separate; every thread that has not exited takes part."""

    def __init__(self, blocks: int, cluster: int, threads: int, padded_threads: int) -> None:
        self._blocks_per_cluster = cluster
        self._threads = threads * cluster
        self._count = np.zeros(blocks // cluster, np.int64)
        self._generation = np.zeros(blocks // cluster, np.int64)
        self._exited = np.zeros(blocks // cluster, np.int64)
        self._expected = np.full(blocks * padded_threads, -1, np.int64)
        self._clocks: Clocks | None = None

    def follow(self, clocks: Clocks) -> None:
        """Makes the barrier order the warps that meet."""
        clusters = len(self._exited)
        self._clocks, self._arrived, self._opened = clocks, Meetings(clocks, clusters), Meetings(clocks, clusters)

    def arrive(self, g: Group) -> None:
        cluster = g.block // self._blocks_per_cluster
        twice = np.flatnonzero(self._expected[g.gid] == self._generation[cluster])
        if len(twice):
            raise Trap(Verdict.LAUNCH_FAILURE, "a thread arrives twice at the cluster barrier", int(g.gid[twice[0]]))
        self._expected[g.gid] = self._generation[cluster]
        self._leave(g)
        np.add.at(self._count, cluster, 1)
        self._complete()

    def wait(self, g: Group) -> Array:
        expected = self._expected[g.gid]
        never = np.flatnonzero(expected < 0)
        if len(never):
            message = "waits at the cluster barrier without having arrived"
            raise Trap(Verdict.LAUNCH_FAILURE, message, int(g.gid[never[0]]))
        passed = self._generation[g.block // self._blocks_per_cluster] != expected
        if self._clocks is not None:
            warps = np.unique(g.gid[passed] >> 5)
            self._opened.take(warps, warps // self._clocks.size)
        return np.asarray(passed)

    def exit(self, g: Group) -> None:
        np.add.at(self._exited, g.block // self._blocks_per_cluster, 1)
        self._leave(g)
        if self._count.any():
            self._complete()

    def _leave(self, g: Group) -> None:
        if self._clocks is not None:
            warps = np.unique(g.gid >> 5)
            self._arrived.leave(warps, warps // self._clocks.size)

    def _complete(self) -> None:
        done = (self._count > 0) & (self._count >= self._threads - self._exited)
        if self._clocks is not None and done.any():
            self._opened.rows[done] = np.maximum(self._opened.rows[done], self._arrived.rows[done])
        self._count[done] = 0
        self._generation[done] += 1


class MBarriers:
    """State of the mbarrier objects, one slot for each 8 bytes of shared memory in the chunk.

    ``expected`` arrivals a phase, ``pending`` arrivals, outstanding transaction bytes ``tx`` (negative for a while
    where data lands before it is announced), completed ``phase`` count. ``expected`` 0: no mbarrier there.
    """

    def __init__(self, slots: int) -> None:
        self._expected = np.zeros(slots, np.int64)
        self._pending = np.zeros(slots, np.int64)
        self._tx = np.zeros(slots, np.int64)
        self._phase = np.zeros(slots, np.int64)
        self.age = np.zeros(slots, np.int64)  # phases completed since the block began, however often it was initialised
        self._letters: Letters | None = None
        self.async_races: AsyncRaces | None = None
        self.copies: CopiesInFlight | None = None  # told of who has waited

    def follow(self, clocks: Clocks, races: AsyncRaces) -> None:
        """Makes arrivals order what warps did before them for those that wait."""
        self._letters, self._arrived, self._column = Letters(clocks), Letters(clocks), races.column
        self.async_races = races

    def init(self, g: Group, slot: Array, count: Array) -> None:
        if int(np.min(count)) < 1:
            raise Trap(Verdict.LAUNCH_FAILURE, "mbarrier.init with a count below 1", int(g.gid[0]))
        self._expected[slot] = count
        self._pending[slot] = count
        self._tx[slot] = 0
        self._phase[slot] = 0
        if self.async_races is not None:
            self.async_races.init_barriers(g, slot)
        if self._letters is not None:
            self._letters.forget(slot)
            self._arrived.forget(slot)

    def invalidate(self, g: Group, slot: Array) -> None:
        self._known(g, slot)
        self._expected[slot] = 0

    def expect(self, g: Group, slot: Array, count: Array) -> None:
        self._known(g, slot)
        np.add.at(self._tx, slot, np.broadcast_to(np.asarray(count, np.int64), slot.shape))

    def complete_tx(self, g: Group, slot: Array, count: Array | int) -> None:
        self._known(g, slot)
        self._leave(g, slot)
        np.subtract.at(self._tx, slot, np.broadcast_to(np.asarray(count, np.int64), slot.shape))
        self._settle(slot, int(g.gid[0]))

    def ages(self, slots: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(self.age[slot]) for slot in slots)

    def require(self, slots: tuple[int, ...], gid: int) -> None:
        """Traps where one of ``slots`` has no mbarrier."""
        for slot in slots:
            if self._expected[slot] <= 0:
                raise _no_mbarrier(gid)

    def land(self, gid: int, slots: tuple[int, ...], size: int) -> None:
        """``size`` bytes of a bulk copy have come in each of ``slots``."""
        self.require(slots, gid)
        for slot in slots:
            self._tx[slot] -= size
            if self._tx[slot] == 0 and self._pending[slot] == 0:
                self._complete(np.array([slot]))

    def arrive(
        self, g: Group, slot: Array, count: Array | int = 1, drop: bool = False, no_complete: bool = False
    ) -> Array:
        """Returns the state token: the phase the arrival counts for. ``no_complete``: it must not be the last."""
        self._known(g, slot)
        phase = self._phase[slot]
        amount = np.broadcast_to(np.asarray(count, np.int64), slot.shape)
        self._leave(g, slot)
        np.subtract.at(self._pending, slot, amount)
        if drop:
            np.subtract.at(self._expected, slot, amount)
        if no_complete and (self._pending[slot] == 0).any():
            message = "an arrival with .noComplete completes the phase of its mbarrier"
            raise Trap(Verdict.LAUNCH_FAILURE, message, int(g.gid[0]))
        self._settle(slot, int(g.gid[0]))
        return phase

    def phase(self, slot: Array) -> Array:
        return np.asarray(self._phase[slot])

    def parity_done(self, g: Group, slot: Array, parity: Array) -> Array:
        """Has the phase of the given parity completed?"""
        self._known(g, slot)
        return self._passed(g, slot, (self._phase[slot] & 1) != (np.asarray(parity).astype(np.int64) & 1))

    def token_done(self, g: Group, slot: Array, token: Array) -> Array:
        self._known(g, slot)
        return self._passed(g, slot, self._phase[slot] != np.asarray(token).astype(np.int64))

    def missing(self, slot: int, stride: int, first: int) -> str:
        """What the phase of an mbarrier still needs."""
        arrivals, size = int(self._pending[slot]), int(self._tx[slot])
        needs = [f"{arrivals} more arrival{'s' if arrivals > 1 else ''}"] if arrivals else []
        if size:
            needs.append(f"{size} more bytes" if size > 0 else f"{-size} bytes to be expected that have come")
        return (
            f"the mbarrier at byte {slot * 8 % stride - first} of shared memory: {' and '.join(needs) or 'its phase'}"
        )

    def _leave(self, g: Group, slot: Array) -> None:
        if self._letters is not None:
            self._arrived.leave(g.gid >> 5, slot)

    def _passed(self, g: Group, slot: Array, done: Array) -> Array:
        if not done.all():
            g.cache["mbarrier"] = slot[~done]
        if self._letters is not None and done.any():
            self._letters.take(g.gid[done] >> 5, slot[done])
        if self.copies is not None and done.any():
            self.copies.observe(slot[done], self._phase[slot[done]])
        return np.asarray(done)

    def _known(self, g: Group, slot: Array) -> None:
        bad = np.flatnonzero(self._expected[slot] <= 0)
        if len(bad):
            raise _no_mbarrier(int(g.gid[int(bad[0]) % g.n]))
        if self.async_races is not None:
            for gid, place in {(gid >> 5 << 5, place): (gid, place) for gid, place in _lanes(g, slot)}.values():
                self.async_races.uses_barrier(gid, place)

    def _settle(self, slot: Array, gid: int) -> None:
        touched = np.unique(slot)
        if (self._pending[touched] < 0).any():
            raise Trap(Verdict.DEADLOCK, "an mbarrier has more arrivals than its count in one phase", gid)
        done = touched[(self._pending[touched] == 0) & (self._tx[touched] == 0)]
        if len(done):
            self._complete(done)

    def _complete(self, done: Array) -> None:
        """The phase of the mbarriers ``done`` (distinct) is over."""
        self._phase[done] += 1
        self._pending[done] = self._expected[done]
        self.age[done] += 1
        if self._letters is not None:
            for place in done.tolist():
                self._letters.receive(self._arrived, place, self._column(place), int(self.age[place]))


def _lanes(g: Group, slot: Array) -> list[tuple[int, int]]:
    return list(zip(g.gid.tolist(), slot.tolist(), strict=True))


def _no_mbarrier(gid: int) -> Trap:
    message = "an mbarrier operation on shared memory where no mbarrier was initialised"
    return Trap(Verdict.UNINITIALISED_READ, message, gid)

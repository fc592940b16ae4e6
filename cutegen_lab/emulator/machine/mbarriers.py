"""mbarrier objects (PTX ISA 9.7.13.15): arrivals and transaction bytes, phase after phase."""

from __future__ import annotations

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.machine.lane_group import LaneGroup
from cutegen_lab.emulator.memory.block_memory import BlockMemory
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.async_proxy import AsyncProxyRaces
from cutegen_lab.emulator.races.cp_async import CopiesInFlight
from cutegen_lab.emulator.races.lane_clock import by_place
from cutegen_lab.emulator.races.vector_clock import SparseMeetings, VectorClocks

MOST = (1 << 20) - 1  # maximum arrivals per phase, and maximum pending transaction bytes
_OPAQUE = np.uint64(0x5EED_BA55_1E57_C0DE)  # stored in mbarrier objects, whose contents are opaque


class MBarriers:
    """State of the mbarrier objects, one slot for each 8 bytes of shared memory in the CTA batch.

    ``expected`` arrivals per phase, ``pending`` arrivals, outstanding transaction bytes ``tx`` (negative while data has
    landed before its expect_tx), completed ``phase`` count. ``expected`` 0: no mbarrier there.
    """

    def __init__(self, slots: int, shared: BlockMemory) -> None:
        self._shared = shared
        self._expected = np.zeros(slots, np.int64)
        self._pending = np.zeros(slots, np.int64)
        self._tx = np.zeros(slots, np.int64)
        self._phase = np.zeros(slots, np.int64)
        self.age = np.zeros(slots, np.int64)  # phases completed since the block began, over all initialisations
        self._released: SparseMeetings | None = None
        self._refused_polls: set[tuple[int, ...]] = set()  # (pc, warp, slot, age) of polls that have failed
        self.async_races: AsyncProxyRaces | None = None
        self.copies: CopiesInFlight | None = None  # notified of completed waits

    def follow(self, clocks: VectorClocks, races: AsyncProxyRaces) -> None:
        """Tracks order: accesses before an arrival precede those of a warp that has waited for its phase."""
        self._released, self._arrived, self._column = SparseMeetings(clocks), SparseMeetings(clocks), races.column
        self._clocks = clocks
        self.async_races = races

    def init(self, g: LaneGroup, slot: Array, count: Array) -> None:
        _in_range(g, "mbarrier.init with a count", count, 1)
        self._expected[slot] = count
        self._shared.views[8][slot] = _OPAQUE
        self._shared.unmark(slot, 8)
        self._pending[slot] = count
        self._tx[slot] = 0
        self._phase[slot] = 0
        if self.async_races is not None:
            self.async_races.init_barriers(g, slot)
        if self._released is not None:
            self._released.forget(slot)
            self._arrived.forget(slot)

    def invalidate(self, g: LaneGroup, slot: Array) -> None:
        self._known(g, slot)
        self._expected[slot] = 0
        if self.async_races is not None:
            self.async_races.ends_barriers(g, slot)

    def expect(self, g: LaneGroup, slot: Array, count: Array) -> None:
        self._known(g, slot)
        np.add.at(self._tx, slot, np.broadcast_to(np.asarray(count, np.int64), slot.shape))

    def require_bytes(self, g: LaneGroup, slot: Array) -> None:
        _in_range(g, "an mbarrier with pending bytes", self._tx[slot], -MOST)

    def complete_tx(self, g: LaneGroup, slot: Array, count: Array | int, relaxed: bool = True) -> None:
        """Completes ``count`` bytes. ``relaxed``: no store wrote these bytes."""
        self._known(g, slot)
        if not relaxed:
            self._leave(g, slot)
        np.subtract.at(self._tx, slot, np.broadcast_to(np.asarray(count, np.int64), slot.shape))
        self._settle(slot, int(g.gid[0]))

    def require(self, slots: tuple[int, ...], gid: int) -> None:
        """Traps if one of ``slots`` has no mbarrier, or an overwritten one."""
        for slot in slots:
            if self._expected[slot] <= 0:
                raise _no_mbarrier(gid)
            if self._shared.views[8][slot] != _OPAQUE:
                raise self._overwritten(gid, slot)

    def land(self, gid: int, slot: int, size: int) -> None:
        """Completes ``size`` bytes of a bulk copy."""
        self.require((slot,), gid)
        self._tx[slot] -= size
        if self._tx[slot] == 0 and self._pending[slot] == 0:
            self._complete(np.array([slot]))

    def land_together(self, slots: Array, size: int) -> None:
        """As :meth:`land`, for one copy on each of ``slots`` (distinct)."""
        self._tx[slots] -= size
        done = slots[(self._tx[slots] == 0) & (self._pending[slots] == 0)]
        if len(done):
            self._complete(done)

    def require_count(self, g: LaneGroup, count: Array | int) -> None:
        _in_range(g, "an arrival at an mbarrier with a count", count, 1)

    def arrive(
        self, g: LaneGroup, slot: Array, count: Array | int = 1, drop: bool = False, no_complete: bool = False,
        relaxed: int | None = None,
    ) -> Array:  # fmt: skip
        """Returns the state token: the phase for which the arrival counts. ``no_complete``: the arrival must not
        complete it. ``relaxed``: the scope of an arrival that orders only accesses before an earlier fence."""
        self._known(g, slot)
        phase = self._phase[slot]
        amount = np.broadcast_to(np.asarray(count, np.int64), slot.shape)
        self._leave(g, slot, relaxed)
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

    def parity_done(self, g: LaneGroup, slot: Array, parity: Array, relaxed: int | None = None) -> Array:
        """By lane: True if the phase of the given parity has completed. ``relaxed``: the scope of a wait that orders
        only accesses after a later fence."""
        self._known(g, slot)
        return self._passed(g, slot, (self._phase[slot] & 1) != (np.asarray(parity).astype(np.int64) & 1), relaxed)

    def token_done(self, g: LaneGroup, slot: Array, token: Array, relaxed: int | None = None) -> Array:
        self._known(g, slot)
        return self._passed(g, slot, self._phase[slot] != np.asarray(token).astype(np.int64), relaxed)

    def missing(self, slot: int, stride: int, first: int) -> str:
        """Describes the arrivals and bytes that the phase of an mbarrier still needs."""
        arrivals, size = int(self._pending[slot]), int(self._tx[slot])
        needs = [f"{arrivals} more arrival{'s' if arrivals > 1 else ''}"] if arrivals else []
        if size:
            needs.append(f"{size} more bytes" if size > 0 else f"an expect_tx of {-size} bytes that have arrived")
        return (
            f"the mbarrier at byte {slot * 8 % stride - first} of shared memory: {' and '.join(needs) or 'its phase'}"
        )

    def _leave(self, g: LaneGroup, slot: Array, relaxed: int | None = None) -> None:
        if self._released is None:
            return
        if relaxed is None:
            self._arrived.leave(g.gid, slot)
        elif g.ctas.causality is not None:
            self._arrived.leave_rows(g.ctas.causality.fenced(g.gid >> 5, relaxed), slot)

    def _learn(self, g: LaneGroup, gid: Array, slot: Array, relaxed: int | None) -> None:
        assert self._released is not None
        if relaxed is None:
            self._released.take(gid, slot)
        elif g.ctas.causality is not None:
            for warp, lanes, place in by_place(gid, slot):
                if (row := self._released.at(place)) is not None:
                    g.ctas.causality.find(warp, lanes, row, relaxed)

    def _passed(self, g: LaneGroup, slot: Array, done: Array, relaxed: int | None) -> Array:
        g.cache["denied"] = None
        if self._released is not None and done.any():
            denied = self._denied(g, slot, done)
            if denied.any():
                g.cache["denied"], done = denied, done & ~denied
        if not done.all():
            g.cache["mbarrier"] = slot[~done]
        if self._released is not None and done.any():
            self._learn(g, g.gid[done], slot[done], relaxed)
        if self.async_races is not None and done.any():
            for warp, lanes, place in by_place(g.gid[done], slot[done]):
                self.async_races.waited(warp * 32 + lanes.bit_length() - 1, place)
        if self.copies is not None and done.any():
            self.copies.observe(slot[done], self._phase[slot[done]])
        return np.asarray(done)

    def _denied(self, g: LaneGroup, slot: Array, done: Array) -> Array:
        """Lanes whose poll fails on purpose although the phase is complete: if nothing orders a poll after the
        completion, it may come too early on hardware. Each warp's first such poll in a phase fails, which finds kernels
        that ignore the result."""
        found = np.zeros(g.n, np.bool_)
        warps = g.gid >> 5
        for warp, place in set(zip(warps[done].tolist(), slot[done].tolist(), strict=True)):
            key = (g.pc, warp, place, int(self.age[place]))
            if key not in self._refused_polls and self._is_concurrent(warp, place):
                self._refused_polls.add(key)
                found |= done & (warps == warp) & (slot == place)
        return found

    def _is_concurrent(self, warp: int, place: int) -> bool:
        """True if something before the end of the phase is not ordered before ``warp``."""
        assert self._released is not None
        row = self._released.at(place)
        if row is None:
            return False
        unknown = row > self._clocks.known[warp]
        unknown[self._column(place)] = False
        return bool(unknown.any())

    def goes_on(self, g: LaneGroup, passed: Array) -> Array:
        """Lanes that continue: those that passed, and those whose poll failed on purpose (:meth:`_denied`)."""
        denied = g.cache.get("denied")
        return passed if denied is None else passed | denied

    def _known(self, g: LaneGroup, slot: Array) -> None:
        bad = np.flatnonzero(self._expected[slot] <= 0)
        if len(bad):
            raise _no_mbarrier(int(g.gid[int(bad[0]) % g.n]))
        over = np.flatnonzero(self._shared.views[8][slot] != _OPAQUE)
        if len(over):
            raise self._overwritten(int(g.gid[int(over[0])]), int(slot[over[0]]))
        if self.async_races is not None:
            for warp, lanes, place in by_place(g.gid, slot):
                self.async_races.uses_barrier(warp * 32 + lanes.bit_length() - 1, place)

    def _overwritten(self, gid: int, slot: int) -> Trap:
        at = slot * 8 % self._shared.stride
        where = f"byte {at - self._shared.first} of shared memory"
        message = f"uses the mbarrier at {where}, which was overwritten"
        return Trap(Verdict.NON_DETERMINISTIC, message, gid, at)

    def _settle(self, slot: Array, gid: int) -> None:
        touched = np.unique(slot)
        if (self._pending[touched] < 0).any():
            raise Trap(Verdict.DEADLOCK, "an mbarrier has more arrivals than its count in one phase", gid)
        done = touched[(self._pending[touched] == 0) & (self._tx[touched] == 0)]
        if len(done):
            self._complete(done)

    def _complete(self, done: Array) -> None:
        """Completes the phase of the mbarriers ``done`` (distinct)."""
        self._phase[done] += 1
        self._pending[done] = self._expected[done]
        self.age[done] += 1
        if self._released is not None:
            for place in done.tolist():
                self._released.receive(self._arrived, place, self._column(place), int(self.age[place]))


def _in_range(g: LaneGroup, what: str, count: Array | int, least: int) -> None:
    """Traps for counts out of an mbarrier's range (PTX ISA 9.7.13.15.2 "Contents of the mbarrier object")."""
    low, high = int(np.min(count)), int(np.max(count))
    if low < least or high > MOST:
        message = f"{what} of {low if low < least else high:,}: the number must be {least:,} to {MOST:,}"
        raise Trap(Verdict.LAUNCH_FAILURE, message, int(g.gid[0]))


def _no_mbarrier(gid: int) -> Trap:
    message = "an mbarrier operation on shared memory where no mbarrier was initialised"
    return Trap(Verdict.UNINITIALISED_READ, message, gid)

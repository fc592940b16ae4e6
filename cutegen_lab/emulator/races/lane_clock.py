"""Clocks of single lanes, if these differ from their warp's (PTX ISA 8.9 "Memory Consistency Model" orders threads,
not warps; 9.7.13.2 bar.warp.sync).

A lane that waits (acquires) alone updates its own clock only, until its warp synchronises. A lane that arrives,
releases or fences alone publishes its own accesses, and those of other lanes up to their last synchronisation. Earlier
publications of any lane of the warp count as included: if several lanes publish in turn, a race may be missed, but
no false race is reported.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.ptx.types import Array

_MOST = 4096  # maximum number of recorded publications per warp; older ones count as made by all its lanes
EVERY = 0xFFFF_FFFF
"""All lanes of a warp, as bits."""


class _Record:
    """Publications of one warp since the first one by only some of its lanes: the warp's clock (``counts``), and by
    lane the clock up to which its accesses are included (``covers``)."""

    def __init__(self) -> None:
        self.counts, self.covers, self.size = np.zeros(64, np.int64), np.zeros((64, 32), np.int64), 0

    def add(self, count: int, cover: Array | int) -> None:
        if self.size == len(self.counts):
            self._make_room()
        self.counts[self.size], self.covers[self.size] = count, cover
        self.size += 1

    def last(self) -> Array | int:
        return self.covers[self.size - 1] if self.size else 0

    def at(self, count: Array) -> tuple[Array, Array]:
        """(index of the last publication up to clock ``count``, True if there is one)."""
        number = np.searchsorted(self.counts[: self.size], count, "right") - 1
        return number, number >= 0

    def _make_room(self) -> None:
        if self.size < _MOST:
            self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])
            self.covers = np.concatenate([self.covers, np.zeros_like(self.covers)])
            return
        self.size = half = self.size // 2
        self.counts[:half], self.covers[:half] = self.counts[half:].copy(), self.covers[half:].copy()


class LaneClocks:
    """``known`` and ``own`` are those of :class:`~cutegen_lab.emulator.races.vector_clock.VectorClocks`; ``exited`` by
    thread."""

    def __init__(self, known: Array, own: Array, exited: Array) -> None:
        self._known, self._own, self._exited = known, own, exited.reshape(-1, 32)
        # By warp: the clock from which on its lanes are not ordered with each other.
        self._met = known[np.arange(len(own)), own].copy()
        # By warp with partial synchronisation: [lane, other], the clock from which on ``other`` is not ordered before.
        self._floors: dict[int, Array] = {}
        self._extra: dict[int, dict[int, Array]] = {}  # by warp and lane: the lane's clock, if ahead of the warp's
        self._records: dict[int, _Record] = {}
        self._recorded = np.zeros(len(own), np.bool_)

    # --- lanes -------------------------------------------------------------------------------------------------------

    def split(self, gid: Array) -> tuple[Array, Array, Array]:
        """Of threads in ascending order: (warps, lanes of each as a bit mask, True if these are all running lanes)."""
        starts = np.flatnonzero(np.r_[True, gid[1:] >> 5 != gid[:-1] >> 5])
        warps, lanes = gid[starts] >> 5, np.bitwise_or.reduceat(np.left_shift(1, gid & 31), starts)
        return warps, lanes, self._running(warps) & ~lanes == 0

    def all_run(self, warp: int, lanes: int) -> bool:
        return lanes == EVERY or not int(self._running(np.array([warp]))[0]) & ~lanes

    def _running(self, warps: Array) -> Array:
        return np.packbits(~self._exited[warps], axis=1, bitorder="little").view(np.uint32)[:, 0].astype(np.int64)

    # --- acquiring ---------------------------------------------------------------------------------------------------

    @property
    def even(self) -> bool:
        """True if no lane's clock is ahead of its warp's."""
        return not self._extra

    @property
    def together(self) -> bool:
        """True if all warps have acquired, published and synchronised with all of their lanes."""
        return not (self._extra or self._records or self._floors)

    def met_by_all(self, warps: Array) -> Array:
        """By warp (while ``together``): the clock up to which accesses of its lanes are ordered for all."""
        return np.asarray(self._met[warps] - 1)

    def row(self, warp: int, lanes: int) -> Array:
        """Maximum of the clocks of ``lanes``."""
        rows = [row for lane, row in self._extra.get(warp, {}).items() if lanes >> lane & 1]
        return np.asarray(np.maximum.reduce([self._known[warp], *rows]))

    def learn(self, warp: int, lanes: int, row: Array) -> None:
        """Merges ``row`` into the clocks of ``lanes``, which are not all of ``warp``."""
        mine = self._extra.setdefault(warp, {})
        for lane in lane_numbers(lanes):
            mine[lane] = np.maximum(mine[lane], row) if lane in mine else row.copy()
        if self.all_run(warp, sum(1 << lane for lane in mine)):  # all running lanes have acquired, one after another
            np.maximum(self._known[warp], np.minimum.reduce(list(mine.values())), out=self._known[warp])

    def more(self, gid: Array, column: Array, known: Array) -> Array:
        """``known`` (entries of ``column`` in warps' clocks), raised for lanes whose clocks are ahead."""
        for warp in set(np.unique(gid >> 5).tolist()) & self._extra.keys():
            for lane, row in self._extra[warp].items():
                known = np.where(gid == warp * 32 + lane, np.maximum(known, row[column]), known)
        return known

    # --- publishing --------------------------------------------------------------------------------------------------

    @property
    def recorded(self) -> bool:
        """True if some lanes of a warp have published without the others."""
        return bool(self._records)

    def publishes(self, warp: int, lanes: int, count: int) -> None:
        """``lanes`` of ``warp`` publish at clock ``count``."""
        record = self._records.get(warp)
        if self.all_run(warp, lanes):
            if record is not None:
                record.add(count, count)
            return
        if record is None:
            record = self._records[warp] = _Record()
            self._recorded[warp] = True
        cover = np.maximum(np.full(32, self._met[warp] - 1), record.last())
        listed = lane_numbers(lanes)
        if warp in self._floors:
            cover = np.maximum(cover, self._floors[warp][listed].max(axis=0) - 1)
        cover[listed] = count
        record.add(count, cover)

    def publish_all(self, warps: Array) -> None:
        for warp in self._records.keys() & set(warps.tolist()) if self._records else ():
            count = int(self._known[warp, self._own[warp]])
            self._records[warp].add(count, count)

    def untold(self, warp: Array | None, other: Array, lane: Array, count: Array, known: Array) -> Array | bool:
        """True where ``warp`` has acquired clock ``known`` of warp ``other`` (-1: none), but its publication does not
        include the access of ``lane`` at ``count``. False for a warp's own lanes."""
        asked = self._recorded[other] & (other >= 0) & (known >= count)
        if warp is not None:
            asked &= other != warp
        if not asked.any():
            return False
        other, lane, count, known, asked = np.broadcast_arrays(other, lane, count, known, asked)
        found = np.zeros(asked.shape, np.bool_)
        for one in np.unique(other[asked]).tolist():
            mine, record = asked & (other == one), self._records[one]
            number, there = record.at(known[mine])
            found[mine] = there & (record.covers[number, lane[mine]] < count[mine])
        return found

    # --- synchronising lanes -----------------------------------------------------------------------------------------

    def meet_all(self, warps: Array) -> None:
        """Records that all lanes of ``warps`` (distinct) have synchronised."""
        if self._extra:
            for warp in self._extra.keys() & set(warps.tolist()):
                rows = self._extra.pop(warp).values()
                self._known[warp] = np.maximum.reduce([self._known[warp], *rows])
        if self._floors:
            for warp in self._floors.keys() & set(warps.tolist()):
                del self._floors[warp]
        self._met[warps] = self._known[warps, self._own[warps]]

    def meet(self, warp: int, members: Array, before: int) -> None:
        """Records that the lanes ``members`` have synchronised; their warp's clock was ``before``."""
        floors = self._parts(warp)
        floors[members] = floors[members].max(axis=0)
        floors[np.ix_(members, members)] = before + 1
        if (extra := self._extra.get(warp)) and (rows := [extra[lane] for lane in members.tolist() if lane in extra]):
            most = np.maximum.reduce(rows)
            extra.update({lane: most.copy() for lane in members.tolist()})

    def meet_through(self, warp: int, lanes: int, count: int) -> None:
        """``lanes`` acquire what their own warp published at clock ``count``."""
        if count < self._met[warp]:
            return
        cover: Array | int = count
        if (record := self._records.get(warp)) is not None:
            number, there = record.at(np.array(count))
            cover = record.covers[number] if there else count
        if isinstance(cover, int) and self.all_run(warp, lanes) and warp not in self._floors:
            self._met[warp] = cover + 1
            return
        floors, listed = self._parts(warp), lane_numbers(lanes)
        floors[listed] = np.maximum(floors[listed], cover + 1)

    def meet_all_through(self, warps: Array, counts: Array) -> None:
        """:meth:`meet_through` for all lanes of ``warps`` (distinct)."""
        if self._records or self._floors:
            for warp, count in zip(warps.tolist(), counts.tolist(), strict=True):
                self.meet_through(warp, EVERY, count)
        else:
            self._met[warps] = np.maximum(self._met[warps], counts + 1)

    def _parts(self, warp: int) -> Array:
        return self._floors.setdefault(warp, np.full((32, 32), self._met[warp]))

    def unmet(self, warp: Array, lane: Array, other: Array, count: Array) -> Array:
        """True where the access of lane ``other`` at ``count`` is not ordered before ``lane`` of the same warp."""
        late = np.asarray((count >= self._met[warp]) & (lane != other))
        if self._floors:
            at = np.broadcast_arrays(warp, lane, other, count)
            for found in set(np.unique(warp).tolist()) & self._floors.keys():
                mine = at[0] == found
                floor = self._floors[found][at[1][mine], at[2][mine]]
                late[mine] = (at[3][mine] >= floor) & (at[1][mine] != at[2][mine])
        return late


def lane_numbers(lanes: int) -> list[int]:
    """The numbers of ``lanes``, given as bits."""
    return [lane for lane in range(32) if lanes >> lane & 1]


def by_place(gid: Array, places: Array) -> list[tuple[int, int, int]]:
    """(warp, lanes as bits, place) for threads ``gid`` at ``places``."""
    warps, places = gid >> 5, places.astype(np.int64)
    order = np.lexsort((places, warps))
    warps, places = warps[order], places[order]
    starts = np.flatnonzero(np.r_[True, (warps[1:] != warps[:-1]) | (places[1:] != places[:-1])])
    lanes = np.bitwise_or.reduceat(np.left_shift(1, gid[order] & 31), starts)
    return list(zip(warps[starts].tolist(), lanes.tolist(), places[starts].tolist(), strict=True))

"""Vector clocks (Mattern 1989) over the warps of a cluster.

One more column stands for earlier launches: a warp's entry there rises when it waits for them, or synchronises with a
warp that has. The async proxy has columns too: for the wgmma of each warp and its bulk copies out of shared memory
(groups that have been waited for), and for each mbarrier (completed phases). Further columns record up to which clock a
proxy fence has made a warp's generic accesses to shared and to global memory visible to the async proxy (PTX ISA 8.4
"Proxies"), and its initialisations of mbarriers (9.7.13.4 fence.mbarrier_init). If blocks of different clusters can
wait for each other, the warps of the grid, or of some of its clusters, have columns as well.

A warp's own clock increases each time it *publishes* (arrives, releases). A warp that acquires (waits) merges the
published clock into its own row of ``known``. An access is ordered before a warp if its clock is at most the warp's
entry for its column. Lanes of a warp are ordered by warp-wide instructions, of all lanes or of a member mask; clocks of
single lanes are in :mod:`lane_clock`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.lane_clock import EVERY, LaneClocks, by_place

MBARRIERS = 64  # maximum number of mbarriers per block on which bulk copies complete


class VectorClocks:
    """``known[w, v]``: the clock up to which accesses of warp ``v`` (of the cluster) are ordered before warp ``w`` (of
    the CTA batch).

    Column ``size``, after the last warp: 1 if earlier launches are ordered before the warp. First columns of
    the further groups: ``products``, ``bulk``, ``landing``, ``fenced`` (shared memory), ``fenced_global``, ``made``
    (mbarriers) and ``grid`` (warps of the clusters ``followed``, by ascending number). ``exited``: by thread,
    kept by the batch.
    """

    def __init__(self, blocks: int, cluster: int, warps: int, exited: Array, followed: Array | None = None) -> None:
        self.warps, self.size = warps, cluster * warps
        self._followed: Array = np.zeros(0, np.int64) if followed is None else followed
        total = np.arange(blocks * warps)
        self.own = total % self.size
        self.products = self.size + 1
        self.bulk = self.products + self.size
        self.landing = self.bulk + self.size
        self.fenced = self.landing + MBARRIERS * cluster
        self.fenced_global = self.fenced + self.size
        self.made = self.fenced_global + self.size
        self.grid = self.made + self.size
        self.width = self.grid + len(self._followed) * self.size
        self.known = np.zeros((len(total), self.width), np.int64)
        self.known[total, self.own] = 1
        self.lanes = LaneClocks(self.known, self.own, exited)
        # By warp, if several of its lanes have bulk groups: the number of the wait that completed each group (largest
        # int64: none yet), by group number.
        self.group_ends: dict[int, Array] = {}
        self._began_next = False  # whether a warp allowed the next launch to begin without having waited

    @property
    def follows_grid(self) -> bool:
        """True if order between clusters (all or some) is tracked."""
        return self.width > self.grid

    def column_in_grid(self, cluster: Array, column: Array) -> tuple[Array, Array]:
        """(column in the grid, True if its cluster is tracked) of a warp, from its ``column`` in the cluster."""
        at = np.minimum(np.searchsorted(self._followed, cluster), len(self._followed) - 1)
        followed = self._followed[at] == cluster
        return self.grid + np.where(followed, at * self.size + column, 0), followed

    def now(self, warp: Array) -> Array:
        """Each warp's own entry in its clock."""
        return np.asarray(self.known[warp, self.own[warp]])

    def publish(self, warps: Array) -> Array:
        """Returns the clocks of ``warps`` (distinct), and gives their later accesses a new epoch."""
        self.lanes.publish_all(warps)
        rows = self.known[warps]
        if not self.lanes.even:
            rows = np.stack([self.lanes.row(warp, EVERY) for warp in warps.tolist()])
        self.known[warps, self.own[warps]] += 1
        return rows

    def publish_part(self, warp: int, lanes: int) -> Array:
        """As :meth:`publish`, for ``lanes`` (as bits) of a warp."""
        own, row = self.own[warp], self.lanes.row(warp, lanes)
        self.lanes.publishes(warp, lanes, int(row[own]))
        self.known[warp, own] += 1
        return row

    def meet_all(self, warps: Array) -> None:
        """Records that all lanes of each of ``warps`` (distinct) execute a warp-wide instruction."""
        self.known[warps, self.own[warps]] += 1
        self.lanes.meet_all(warps)

    def meet(self, warp: int, members: Array | None) -> None:
        """Records that the lanes ``members`` of ``warp`` (None: all) execute a warp-wide instruction."""
        if members is None:
            self.meet_all(np.array([warp]))
            return
        before = int(self.known[warp, self.own[warp]])
        self.known[warp, self.own[warp]] += 1
        self.lanes.meet(warp, members, before)

    def proxy_fence(self, gid: Array, shared: bool = True, everywhere: bool = True) -> None:
        """Makes accesses that are ordered before the threads ``gid`` visible to the async proxy: accesses to shared
        memory (``shared``), to global memory (``everywhere``)."""
        firsts = [self.fenced] * shared + [self.fenced_global] * everywhere
        warps, lanes, whole = self.lanes.split(gid)
        whole &= self.lanes.even
        self.lanes.publish_all(warps[whole])
        self._fence(self.known, warps[whole], firsts)
        for warp, some in zip(warps[~whole].tolist(), lanes[~whole].tolist(), strict=True):
            row = self.lanes.row(warp, some)
            self.lanes.publishes(warp, some, int(row[self.own[warp]]))
            self._fence(row[None], np.array([0]), firsts)
            self._keep(warp, some, row)
        self.known[warps, self.own[warps]] += 1

    def _fence(self, rows: Array, at: Array, firsts: list[int]) -> None:
        for first in firsts:
            fenced = slice(first, first + self.size)
            rows[at, fenced] = np.maximum(rows[at, fenced], rows[at, : self.size])

    def init_fence(self, warps: Array) -> None:
        """fence.mbarrier_init: the next publication of ``warps`` (distinct) includes the mbarriers they initialised."""
        own = self.own[warps]
        self.known[warps, self.made + own] = self.known[warps, own]
        self.known[warps, own] += 1

    def announced(self, warps: Array) -> Array:
        """The clock of each of ``warps`` (distinct) in the columns of initialised mbarriers; the other columns are
        0."""
        rows = np.zeros((len(warps), self.width), np.int64)
        rows[:, self.made : self.grid] = self.known[warps, self.made : self.grid]
        return rows

    def hardware(self, column: int) -> str:
        """The kind of asynchronous operation that a column stands for, in words."""
        return "a wgmma" if column < self.bulk else "a bulk copy"

    def learn(self, warps: Array, rows: Array) -> None:
        """Merges ``rows``, one for each of ``warps`` (distinct) or one for all, into their clocks."""
        self.known[warps] = np.maximum(self.known[warps], rows)
        told = np.broadcast_to(rows, (len(warps), self.width))[np.arange(len(warps)), self.own[warps]]
        self.lanes.meet_all_through(warps, told)

    def learn_part(self, warp: int, lanes: int, row: Array) -> None:
        """As :meth:`learn`, for ``lanes`` (as bits) of a warp."""
        self._keep(warp, lanes, row)
        self.lanes.meet_through(warp, lanes, int(row[self.own[warp]]))

    def _keep(self, warp: int, lanes: int, row: Array) -> None:
        if self.lanes.all_run(warp, lanes):
            np.maximum(self.known[warp], row, out=self.known[warp])
        else:
            self.lanes.learn(warp, lanes, row)

    def learn_column(self, gid: Array, column: int, count: int) -> None:
        """Raises ``column`` to at least ``count`` in the clocks of the threads ``gid``."""
        row = np.zeros(self.width, np.int64)
        row[column] = count
        warps, lanes, whole = self.lanes.split(gid)
        self.known[warps[whole], column] = np.maximum(self.known[warps[whole], column], count)
        for warp, some in zip(warps[~whole].tolist(), lanes[~whole].tolist(), strict=True):
            self.lanes.learn(warp, some, row)

    def wait_for_launches(self, gid: Array) -> None:
        self.learn_column(gid, self.size, 1)

    def launch_dependents(self, gid: Array) -> None:
        """Records that the threads ``gid`` execute griddepcontrol.launch_dependents for their blocks."""
        self._began_next |= not self.waited(gid).all()

    def waited(self, gid: Array) -> Array:
        """By thread: True if earlier launches are ordered before it."""
        return np.asarray(self.knows(gid, np.array(self.size)) > 0)

    def some_have_waited(self) -> bool:
        """True if some thread has waited for earlier launches."""
        return bool(self.waited(np.arange(len(self.own) * 32)).any())

    def every_block_waited(self) -> bool:
        """True if each block has waited for earlier launches before its launch_dependents."""
        waited = self.waited(np.arange(len(self.own) * 32))
        return not self._began_next and bool(waited.reshape(-1, self.warps * 32).any(axis=1).all())

    def knows(self, gid: Array, column: Array) -> Array:
        """Entry of ``column`` in the clock of each of the threads ``gid``."""
        known = np.asarray(self.known[gid >> 5, column])
        return known if self.lanes.even else self.lanes.more(gid, column, known)

    def row(self, gid: int) -> Array:
        """The clock of thread ``gid``."""
        return self.lanes.row(gid >> 5, 1 << (gid & 31))

    def known_to_all(self, warps: Array) -> Array | None:
        """For each of ``warps``: the clock up to which accesses of every warp of its cluster are ordered before all its
        lanes. None if clocks of lanes differ from their warp's."""
        if self.group_ends or not self.lanes.together:
            return None
        return np.minimum(np.minimum.reduce(self.known[warps, : self.size], axis=1), self.lanes.met_by_all(warps))

    def unknown(self, gid: Array, column: Array, lane: Array, count: Array, first: int = 0) -> Array:
        """True where the access of ``lane`` of ``column`` at ``count`` is not ordered before the threads ``gid``.
        ``first``: 0, or the first column of proxy fences."""
        return self.late(gid, self.knows(gid, first + column), column, lane, count, first > 0)

    def late(self, gid: Array, known: Array, column: Array, lane: Array, count: Array, fenced: bool = False) -> Array:
        """As :meth:`unknown`, with ``known``: the entries of ``column``, or of its proxy fences (``fenced``)."""
        late = np.asarray(known < count)
        if self.lanes.recorded:
            warp = gid >> 5
            other = np.where(column < self.size, warp - warp % self.size + column, -1)
            late |= self.lanes.untold(None if fenced else warp, other, lane, count, known)
        if self.group_ends:
            late |= self._groups_late(gid, known, column, count)
        return late

    def _groups_late(self, gid: Array, known: Array, column: Array, count: Array) -> Array:
        first = (gid >> 5) - (gid >> 5) % self.size
        other = np.where((column >= self.bulk) & (column < self.landing), first + column - self.bulk, -1)
        found = np.zeros(np.broadcast_shapes(other.shape, np.shape(known), np.shape(count)), np.bool_)
        other, known, count = np.broadcast_arrays(other, known, count)
        for warp, ends in self.group_ends.items():
            if (mine := other == warp).any():
                found[mine] = ends[count[mine]] > known[mine]
        return found


class Meetings:
    """Clocks published at synchronisation points such as barriers: one row for each place (an index of ``shape``)."""

    def __init__(self, clocks: VectorClocks, *shape: int) -> None:
        self._clocks = clocks
        self.rows = np.zeros((*shape, clocks.width), np.int64)

    def leave(self, warps: Array, *place: Any) -> None:
        """Publishes the clocks of ``warps`` (distinct) at ``place``, one index per warp."""
        self.leave_rows(self._clocks.publish(warps), *place)

    def leave_rows(self, rows: Array, *place: Any) -> None:
        """Merges ``rows`` into ``place``, one index per row."""
        np.maximum.at(self.rows, place, rows)

    def take(self, warps: Array, *place: Any) -> None:
        self._clocks.learn(warps, self.rows[place])


class SparseMeetings:
    """:class:`Meetings` for sparse places (mbarriers, words of shared memory)."""

    def __init__(self, clocks: VectorClocks) -> None:
        self._clocks = clocks
        self._rows: dict[int, Array] = {}

    def forget(self, places: Array) -> None:
        for place in np.unique(places).tolist():
            self._rows.pop(place, None)

    def leave(self, gid: Array, places: Array) -> None:
        for warp, lanes, place in by_place(gid, places):
            self._leave(self._clocks.publish_part(warp, lanes), place)

    def leave_rows(self, rows: Array, places: Array) -> None:
        """Merges one row into each of ``places``."""
        for row, place in zip(rows, places.tolist(), strict=True):
            self._leave(row, place)

    def _leave(self, row: Array, place: int) -> None:
        before = self._rows.get(place)
        self._rows[place] = row if before is None else np.maximum(row, before)

    def at(self, place: int) -> Array | None:
        return self._rows.get(place)

    def receive(self, other: SparseMeetings, place: int, column: int, count: int) -> None:
        """Merges the row of ``other`` at ``place``, with ``count`` in ``column``."""
        mine, theirs = self._rows.get(place), other._rows.get(place)
        row = np.zeros(self._clocks.width, np.int64) if theirs is None else theirs.copy()
        row[column] = max(row[column], count)
        self._rows[place] = row if mine is None else np.maximum(row, mine)

    def take(self, gid: Array, places: Array) -> None:
        for warp, lanes, place in by_place(gid, places):
            if (row := self._rows.get(place)) is not None:
                self._clocks.learn_part(warp, lanes, row)

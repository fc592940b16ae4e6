"""What each warp knows the others to have done: vector clocks (Mattern 1989) over the warps of a cluster.

One more column stands for the launches before: who knows of it has waited for them, or met someone who has. What
hardware does beside the warps has columns too: the wgmma of each warp and its bulk copies out of shared memory (groups
that have been waited for), and each mbarrier (phases that have completed). Further columns say which of the
generic accesses of a warp to shared and to global memory a proxy fence has made visible to such hardware (PTX ISA 8.4
"Proxies"), and which of the mbarriers that it made a fence has announced (9.7.13.4 fence.mbarrier_init). Where blocks
of different clusters can wait for each other, the warps of the grid, or of some of its clusters, have columns besides.

A warp's own count goes up each time it publishes (arrives somewhere); what it did before is *known* to whoever learns
of that (waits there). An access is ordered after another where its warp knows of it. Lanes of a warp are ordered by
what they do together, all of them or those of a member mask.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.emulator.types import Array

MBARRIERS = 64  # that bulk copies of one block complete on


class Clocks:
    """``known[w, v]``: how far warp ``w`` (of the chunk) knows warp ``v`` (of its cluster) to have come.

    Column ``size``, after the last warp: does it know that earlier launches have ended? ``products``, ``bulk``,
    ``landing``, ``fenced`` (of shared memory), ``fenced_global``, ``made`` and ``grid`` are where the other columns
    begin, the last one a warp of each of the clusters ``followed`` (their numbers in the grid, ascending).
    """

    def __init__(self, blocks: int, cluster: int, warps: int, followed: Array | None = None) -> None:
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
        # By warp whose lanes have met in parts: [lane, other], the count from which on a lane knows nothing of another.
        self._parts: dict[int, Array] = {}
        self._began_next = False  # has a warp let the next launch begin that knew nothing of the launches before?

    @property
    def follows_grid(self) -> bool:
        """Is order between clusters followed, or between some?"""
        return self.width > self.grid

    def column_in_grid(self, cluster: Array, column: Array) -> tuple[Array, Array]:
        """(column of a warp of any cluster, is its cluster followed?) from its ``column`` in the cluster."""
        at = np.minimum(np.searchsorted(self._followed, cluster), len(self._followed) - 1)
        followed = self._followed[at] == cluster
        return self.grid + np.where(followed, at * self.size + column, 0), followed

    def now(self, warp: Array) -> Array:
        """The own count of each warp."""
        return np.asarray(self.known[warp, self.own[warp]])

    def publish(self, warps: Array) -> Array:
        """A row a warp (distinct): all that it knows. What it does from here on is news."""
        rows = self.known[warps]
        self.known[warps, self.own[warps]] += 1
        return rows

    def meet_all(self, warps: Array) -> None:
        """All lanes of each of ``warps`` (distinct) execute a warp-wide instruction."""
        if self._parts:
            for warp in warps.tolist():
                self._parts.pop(warp, None)
        self.known[warps, self.own[warps]] += 1

    def meet(self, warp: int, members: Array | None) -> None:
        """The lanes ``members`` of ``warp`` (None: all) execute a warp-wide instruction."""
        own = self.own[warp]
        if members is None:
            self._parts.pop(warp, None)
            self.known[warp, own] += 1
            return
        floors = self._parts.setdefault(warp, np.full((32, 32), self.known[warp, own]))
        self.known[warp, own] += 1
        floors[members] = floors[members].max(axis=0)
        floors[np.ix_(members, members)] = self.known[warp, own]

    def unmet(self, warp: Array, lane: Array, other: Array, count: Array) -> Array:
        """Has ``lane`` not met the ``other`` lane of its warp since that one's access at ``count``?"""
        now = self.now(warp)
        late = np.asarray((count == now) & (lane != other))
        if self._parts:
            at = np.broadcast_arrays(warp, lane, other, count, now)
            for found in set(np.unique(warp).tolist()) & self._parts.keys():
                mine = at[0] == found
                floor = self._parts[found][at[1][mine], at[2][mine]]
                late[mine] = (at[3][mine] >= floor) & (at[3][mine] <= at[4][mine]) & (at[1][mine] != at[2][mine])
        return late

    def proxy_fence(self, warps: Array, shared: bool = True, everywhere: bool = True) -> None:
        """What ``warps`` (distinct) know of is visible to asynchronous hardware; what they do from here on is not.
        ``shared``: in shared memory. ``everywhere``: in global memory."""
        seen = self.known[warps, : self.size]
        for first in [self.fenced] * shared + [self.fenced_global] * everywhere:
            fenced = self.known[warps, first : first + self.size]
            self.known[warps, first : first + self.size] = np.maximum(fenced, seen)
        self.known[warps, self.own[warps]] += 1

    def init_fence(self, warps: Array) -> None:
        """The mbarriers that ``warps`` (distinct) have made are announced with whatever the warps leave next."""
        own = self.own[warps]
        self.known[warps, self.made + own] = self.known[warps, own]
        self.known[warps, own] += 1

    def announced(self, warps: Array) -> Array:
        """A row a warp (distinct): of all that it knows, the mbarriers that a fence has announced."""
        rows = np.zeros((len(warps), self.width), np.int64)
        rows[:, self.made : self.grid] = self.known[warps, self.made : self.grid]
        return rows

    def hardware(self, column: int) -> str:
        """Whose column it is."""
        return "a wgmma" if column < self.bulk else "a bulk copy"

    def learn(self, warps: Array, rows: Array) -> None:
        """``rows``: one for each of ``warps`` (distinct), or one for all."""
        self.known[warps] = np.maximum(self.known[warps], rows)
        if self._parts:
            for warp in warps.tolist():
                self._parts.pop(warp, None)

    def wait_for_launches(self, warps: Array) -> None:
        self.known[warps, self.size] = 1

    def launch_dependents(self, warps: Array) -> None:
        """The next launch may begin, as far as the block of each of ``warps`` is concerned."""
        self._began_next |= not self.waited(warps).all()

    def waited(self, warps: Array) -> Array:
        """Does each of ``warps`` know that earlier launches have ended?"""
        return np.asarray(self.known[warps, self.size] > 0)

    def every_block_waited(self) -> bool:
        """Has each block waited for earlier launches, before it let the next one begin?"""
        return not self._began_next and bool((self.known[:, self.size] > 0).reshape(-1, self.warps).any(axis=1).all())

    def unknown(self, warp: Array, other: Array, count: Array) -> Array:
        """Does ``warp`` not know that ``other`` (a number in the cluster) has passed ``count``?"""
        return np.asarray(self.known[warp, other] < count)


class Meetings:
    """Where warps leave what they know for others: one row a place. Places are whatever indexes ``shape``."""

    def __init__(self, clocks: Clocks, *shape: int) -> None:
        self._clocks = clocks
        self.rows = np.zeros((*shape, clocks.width), np.int64)

    def leave(self, warps: Array, *place: Any) -> None:
        """``warps`` are distinct; ``place`` has an index for each."""
        self.leave_rows(self._clocks.publish(warps), *place)

    def leave_rows(self, rows: Array, *place: Any) -> None:
        """One for each index of ``place``."""
        np.maximum.at(self.rows, place, rows)

    def take(self, warps: Array, *place: Any) -> None:
        self._clocks.learn(warps, self.rows[place])


class Letters:
    """As :class:`Meetings`, for places that are few and far apart (mbarriers, words of shared memory)."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._rows: dict[int, Array] = {}

    def forget(self, places: Array) -> None:
        for place in np.unique(places).tolist():
            self._rows.pop(place, None)

    def leave(self, warps: Array, places: Array) -> None:
        for warp, place in _pairs(warps, places):
            self._leave(self._clocks.publish(np.array([warp]))[0], place)

    def leave_rows(self, rows: Array, places: Array) -> None:
        """One for each of ``places``."""
        for row, place in zip(rows, places.tolist(), strict=True):
            self._leave(row, place)

    def _leave(self, row: Array, place: int) -> None:
        before = self._rows.get(place)
        self._rows[place] = row if before is None else np.maximum(row, before)

    def at(self, place: int) -> Array | None:
        return self._rows.get(place)

    def receive(self, other: Letters, place: int, column: int, count: int) -> None:
        """All that ``other`` has in ``place``; and ``count`` in ``column``."""
        mine, theirs = self._rows.get(place), other._rows.get(place)
        row = np.zeros(self._clocks.width, np.int64) if theirs is None else theirs.copy()
        row[column] = max(row[column], count)
        self._rows[place] = row if mine is None else np.maximum(row, mine)

    def take(self, warps: Array, places: Array) -> None:
        for warp, place in _pairs(warps, places):
            if (row := self._rows.get(place)) is not None:
                self._clocks.learn(np.array([warp]), row)


def _pairs(warps: Array, places: Array) -> list[list[int]]:
    found: list[list[int]] = np.unique(np.stack([warps, places]), axis=1).T.tolist()
    return found

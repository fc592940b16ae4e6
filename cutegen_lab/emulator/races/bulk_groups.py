"""Bulk groups of copies out of shared memory (PTX ISA 9.7.9.25.6). Each thread commits and waits for its own groups.

Groups of a warp are numbered in the order in which its lanes begin them. Each wait raises the warp's column in the
thread's clock, at least to the numbers of the groups that it completes. If several lanes of a warp have groups,
``VectorClocks.group_ends`` has the number of the wait that completed each group.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.races.vector_clock import VectorClocks

_PENDING = np.iinfo(np.int64).max


class BulkGroups:
    def __init__(self, clocks: VectorClocks) -> None:
        self._clocks = clocks
        self._committed: dict[int, int] = {}  # by thread: number of committed groups since its first copy
        # By thread: its groups that are not waited for, number in the thread → number in the warp.
        self._pending: dict[int, dict[int, int]] = {}
        self._begun = np.zeros(len(clocks.own), np.int64)  # by warp: number of groups so far
        self._waits = np.zeros(len(clocks.own), np.int64)
        self._lanes: dict[int, int] = {}  # by warp: the thread that began its first group

    def filling(self, gid: int) -> int:
        """The group to which thread ``gid`` adds copies, by its number in the warp."""
        mine, warp = self._pending.setdefault(gid, {}), gid >> 5
        group = self._committed.setdefault(gid, 0)
        if group not in mine:
            self._begun[warp] += 1
            mine[group] = int(self._begun[warp])
            self._begin(warp, gid, mine[group])
        return mine[group]

    def _begin(self, warp: int, gid: int, number: int) -> None:
        ends = self._clocks.group_ends
        if self._lanes.setdefault(warp, gid) != gid and warp not in ends:
            ends[warp] = np.zeros(number + 64, np.int64)  # groups of the first thread: wait n completed group n
            ends[warp][:number] = np.arange(number)
            ends[warp][list(self._pending[self._lanes[warp]].values())] = _PENDING
        if warp in ends:
            if number >= len(ends[warp]):
                ends[warp] = np.concatenate([ends[warp], np.zeros_like(ends[warp])])
            ends[warp][number] = _PENDING

    def commit(self, gids: list[int]) -> None:
        for gid in gids:
            if gid in self._pending:
                self._committed[gid] += 1

    def wait(self, gids: list[int], pending: list[int]) -> None:
        """Each thread waits for all but the last ``pending`` of the groups that it has committed itself."""
        for gid, left in zip(gids, pending, strict=True):
            found = self._pending.get(gid, {})
            if done := [found.pop(n) for n in [n for n in found if n < self._committed[gid] - left]]:
                warp, column = gid >> 5, self._clocks.bulk + int(self._clocks.own[gid >> 5])
                self._waits[warp] = max(int(self._waits[warp]) + 1, *done)
                if warp in self._clocks.group_ends:
                    self._clocks.group_ends[warp][done] = self._waits[warp]
                self._clocks.learn_column(np.array([gid]), column, int(self._waits[warp]))

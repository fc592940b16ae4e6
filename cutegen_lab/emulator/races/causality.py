"""Order through strong operations and fences (PTX ISA 8.9.5 "Release and Acquire Patterns", 8.9.6 "Causality Order").

A releasing write stores its warp's clock at the location it writes; a relaxed write stores the clock of the warp's last
fence. An atomic operation merges its clock with the stored one, a store replaces it. An acquiring read merges the
stored clock into its warp's; a relaxed read does so at the warp's next fence. The scopes of both operations must
include both warps: a writer stores a clock for each scope up to its own, a reader takes those up to its own scope.
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.ptx.traits import GRID, Ordering
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.lane_clock import by_place, lane_numbers
from cutegen_lab.emulator.races.vector_clock import VectorClocks

_SCOPES = GRID + 1
Scope = tuple[int, int]
"""(scope, number of the block or cluster; 0 for the grid)."""
Left = dict[int, dict[Scope, Array]]
"""Stored clocks by location and scope. A clock at grid scope has only the columns of the grid's warps."""


class Causality:
    """Causality order of the warps of a CTA batch. ``blocks``: numbers of its blocks in the grid."""

    def __init__(self, clocks: VectorClocks, blocks: Array, cluster: int) -> None:
        self._clocks = clocks
        self._block = np.repeat(blocks, clocks.warps)
        self._cluster = self._block // cluster
        self._places = [-1] * len(self._block)
        if clocks.follows_grid:
            column, followed = clocks.column_in_grid(self._cluster, np.zeros_like(self._cluster))
            self._places = np.where(followed, column - clocks.grid, -1).tolist()
        shape = (_SCOPES, len(self._block), clocks.width)
        self._fenced, self._found = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._has_fenced, self._has_found = (np.zeros(len(self._block), np.bool_) for _ in range(2))
        # By lane: its warp's clock at its last fence, and at its last relaxed read of a stored clock.
        self._fenced_at, self._found_at = (np.full((len(self._block), 32), -1, np.int64) for _ in range(2))

    def fence(self, gid: Array, order: Ordering) -> None:
        for warp, lanes, _ in by_place(gid, np.zeros_like(gid)):
            if order.acquires and self._has_found[warp] and (learn := self._behind(self._found_at[warp], warp, lanes)):
                self._clocks.learn_part(warp, learn, self._found[: order.scope + 1, warp].max(axis=0))
            if order.releases:
                self._fenced[: order.scope + 1, warp] = row = self._clocks.publish_part(warp, lanes)
                self._fenced_at[warp, lane_numbers(lanes)] = row[self._clocks.own[warp]]
                self._has_fenced[warp] = True

    def fenced(self, warps: Array, scope: int) -> Array:
        """For each warp its clock at its last fence of at least this scope, which a relaxed arrival releases."""
        return np.asarray(self._fenced[scope, warps])

    def find(self, warp: int, lanes: int, row: Array, scope: int) -> None:
        """A relaxed operation of ``lanes`` reads clock ``row``: their next fence of at least this scope acquires it."""
        self._found[scope, warp] = np.maximum(self._found[scope, warp], row)
        self._found_at[warp, lane_numbers(lanes)] = self._clocks.now(np.array([warp]))[0]
        self._has_found[warp] = True

    def read(self, left: Left, gid: Array, places: Array, order: Ordering) -> None:
        """Reads, for each of the threads ``gid``, the clock stored at its location; called before a strong read."""
        if left:
            for warp, lanes, place in by_place(gid, places):
                self._take(left, warp, lanes, place, order)

    def write(self, left: Left, gid: Array, places: Array, order: Ordering) -> None:
        """Stores clocks at the locations that the threads ``gid`` wrote; called after a strong write."""
        if left or order.releases or self._has_fenced[gid >> 5].any():
            for warp, lanes, place in by_place(gid, places):
                left.pop(place, None)
                self._leave(left, warp, lanes, place, order)

    def update(self, left: Left, gid: Array, places: Array, order: Ordering) -> None:
        """Reads and stores clocks for an atomic operation, which the lanes perform one after another."""
        if left or order.releases or self._has_fenced[gid >> 5].any():
            for warp, lanes, place in by_place(gid, places):
                self._take(left, warp, lanes, place, order)
                self._leave(left, warp, lanes, place, order)

    def _take(self, left: Left, warp: int, lanes: int, place: int, order: Ordering) -> None:
        found = left.get(place)
        if not found or not order.reads:
            return
        for scope in range(order.scope + 1):
            row = found.get((scope, self._number(scope, warp)))
            if row is None:
                continue
            seen = self._at_home(row, warp) if scope == GRID else row
            if order.acquires:
                self._clocks.learn_part(warp, lanes, seen)
            else:
                self.find(warp, lanes, seen, scope)

    def _leave(self, left: Left, warp: int, lanes: int, place: int, order: Ordering) -> None:
        if not order.releases and not (self._has_fenced[warp] and self._behind(self._fenced_at[warp], warp, lanes)):
            return
        now = self._clocks.publish_part(warp, lanes) if order.releases else None
        found = left.setdefault(place, {})
        for scope in range(order.scope + 1):
            row = self._fenced[scope, warp] if now is None else now
            row = self._abroad(row, warp) if scope == GRID else row
            key = scope, self._number(scope, warp)
            found[key] = np.maximum(found[key], row) if key in found else row.copy()

    def _behind(self, at: Array, warp: int, lanes: int) -> int:
        """Those of ``lanes``, as bits, that are ordered after an event of some lane of their warp. ``at``: the warp's
        clock at each lane's event, or -1."""
        mine, others = np.array(lane_numbers(lanes)), np.flatnonzero(at >= 0)
        if (at[mine] >= 0).all():
            return lanes
        unmet = self._clocks.lanes.unmet(np.array([[warp]]), mine[:, None], others[None], at[others][None])
        behind = mine[(at[mine] >= 0) | ~unmet.all(axis=1)]
        return int(np.bitwise_or.reduce(1 << behind, initial=0))

    def _number(self, scope: int, warp: int) -> int:
        return (int(self._block[warp]), int(self._cluster[warp]), 0)[scope]

    def _abroad(self, row: Array, warp: int) -> Array:
        """``row`` (columns of a cluster) → the grid's columns, which are valid in other clusters."""
        clocks = self._clocks
        found: Array = row[clocks.grid :].copy()
        if (at := self._mine(warp)) is not None:
            np.maximum(found[at], row[: clocks.size], out=found[at])
        return found

    def _at_home(self, row: Array, warp: int) -> Array:
        """The inverse of :meth:`_abroad`."""
        clocks = self._clocks
        found = np.zeros(clocks.width, np.int64)
        found[clocks.grid :] = row
        if (at := self._mine(warp)) is not None:
            found[: clocks.size] = row[at]
        return found

    def _mine(self, warp: int) -> slice | None:
        """The grid's columns for the warps of ``warp``'s cluster; None if that cluster is not tracked."""
        at = self._places[warp]
        return None if at < 0 else slice(at, at + self._clocks.size)

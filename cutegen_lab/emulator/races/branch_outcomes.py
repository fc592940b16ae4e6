"""Which outcomes of a launch's branches the clusters had in which races were looked for.

In a large run these are a few clusters. A race behind a branch shows only in a cluster that takes it, which may be one
of many: clusters that alone had some outcome are looked at afterwards (:meth:`BranchOutcomes.unwatched_clusters`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cutegen_lab.emulator.ptx.types import Array

if TYPE_CHECKING:
    from cutegen_lab.emulator.machine.lane_group import LaneGroup

MOST_CLUSTERS = 8  # looked at afterwards


class BranchOutcomes:
    """Outcomes, (basic block, is its branch taken?), of one launch."""

    def __init__(self) -> None:
        self._watched: set[tuple[int, bool]] = set()
        self._elsewhere: dict[tuple[int, bool], int] = {}  # a cluster that had the outcome, unwatched

    def met(self, pc: int, g: LaneGroup, guard: Array, negated: bool, count: int) -> None:
        """``count`` lanes of ``g`` take the branch of basic block ``pc``: those where ``guard`` is not ``negated``."""
        for taken, lanes in ((True, count), (False, g.n - count)):
            if lanes and (outcome := (pc, taken)) not in self._watched:
                self._add(outcome, g, guard, taken != negated)

    def _add(self, outcome: tuple[int, bool], g: LaneGroup, guard: Array, value: bool) -> None:
        m = g.m
        if m.clocks is not None:
            self._watched.add(outcome)
        elif outcome not in self._elsewhere:
            lane = int(np.argmax(guard == value))
            self._elsewhere[outcome] = int(m.numbers[g.gid[lane] // m.padded_threads]) // m.cluster_size

    def unwatched_clusters(self) -> Array:
        """A cluster for each outcome that no watched one had, at most ``MOST_CLUSTERS``."""
        some = {cluster for outcome, cluster in self._elsewhere.items() if outcome not in self._watched}
        return np.array(sorted(some)[:MOST_CLUSTERS], np.int64)

"""Which outcomes of a launch's branches the clusters had in which races were looked for.

In a large run these are a few clusters. A race behind a branch shows only in a cluster that takes it, which may be one
of many: clusters that alone had some outcome are looked at afterwards (:meth:`BranchOutcomes.unwatched_clusters`).
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.watched import WatchedBlocks
from cutegen_lab.emulator.roles import Group

MOST_CLUSTERS = 8  # looked at afterwards


class BranchOutcomes:
    """Outcomes, (basic block, is its branch taken?), of one launch."""

    def __init__(self) -> None:
        self._watched: set[tuple[int, bool]] = set()
        self._elsewhere: dict[tuple[int, bool], int] = {}  # a cluster that had the outcome, unwatched

    def met(self, m: WatchedBlocks, g: Group, guard: Array, negated: bool, count: int) -> None:
        """``count`` lanes of ``g``, a group of ``m``, take the branch of their basic block: where ``guard`` is not
        ``negated``."""
        for taken, lanes in ((True, count), (False, g.n - count)):
            if lanes and (outcome := (g.pc, taken)) not in self._watched:
                self._add(outcome, m, g, guard, taken != negated)

    def _add(self, outcome: tuple[int, bool], m: WatchedBlocks, g: Group, guard: Array, value: bool) -> None:
        if m.clocks is not None:
            self._watched.add(outcome)
        elif outcome not in self._elsewhere:
            lane = int(np.argmax(guard == value))
            self._elsewhere[outcome] = int(m.numbers[g.gid[lane] // m.padded_threads]) // m.cluster_size

    def unwatched_clusters(self) -> Array:
        """A cluster for each outcome that no watched one had, at most ``MOST_CLUSTERS``."""
        some = {cluster for outcome, cluster in self._elsewhere.items() if outcome not in self._watched}
        return np.array(sorted(some)[:MOST_CLUSTERS], np.int64)

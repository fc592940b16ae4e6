"""Branch coverage of the watched clusters: those that are checked for races.

In a large run only a few clusters are watched. A race in code behind a branch shows only in a cluster that takes the
branch. So clusters whose branch outcomes no watched cluster had are checked afterwards
(:meth:`BranchOutcomes.unwatched_clusters`).
"""

from __future__ import annotations

import numpy as np

from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.watched import WatchedBlocks
from cutegen_lab.emulator.roles import Group

MOST_CLUSTERS = 8  # maximum number of clusters that are checked afterwards


class BranchOutcomes:
    """Outcomes (basic block, branch taken) of one launch."""

    def __init__(self) -> None:
        self._watched: set[tuple[int, bool]] = set()
        self._elsewhere: dict[tuple[int, bool], int] = {}  # by outcome: an unwatched cluster that had it

    def met(self, ctas: WatchedBlocks, g: Group, guard: Array, negated: bool, count: int) -> None:
        """Records that ``count`` lanes of ``g`` take the branch of their basic block: those whose ``guard`` differs
        from ``negated``."""
        for taken, lanes in ((True, count), (False, g.n - count)):
            if lanes and (outcome := (g.pc, taken)) not in self._watched:
                self._add(outcome, ctas, g, guard, taken != negated)

    def _add(self, outcome: tuple[int, bool], ctas: WatchedBlocks, g: Group, guard: Array, value: bool) -> None:
        if ctas.clocks is not None:
            self._watched.add(outcome)
        elif outcome not in self._elsewhere:
            lane = int(np.argmax(guard == value))
            self._elsewhere[outcome] = int(ctas.numbers[g.gid[lane] // ctas.padded_threads]) // ctas.cluster_size

    def unwatched_clusters(self) -> Array:
        """For each outcome that no watched cluster had, one cluster that had it; at most ``MOST_CLUSTERS``."""
        some = {cluster for outcome, cluster in self._elsewhere.items() if outcome not in self._watched}
        return np.array(sorted(some)[:MOST_CLUSTERS], np.int64)

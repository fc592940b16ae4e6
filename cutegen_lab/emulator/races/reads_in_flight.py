"""cp.async copies that may still read global memory (PTX ISA 9.7.9.25.1: "modifying the source memory location … before
the asynchronous operation completes, exhibits undefined behavior").

A read is complete when its thread has waited for its commit group, or when the phase of the mbarrier that the copy
signals is complete.
Only reads of tensors that the plan may write are recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.access_marks import Rows, in_group, landing


@dataclass
class _Batch:
    """Reads of one instruction: by lane its thread, commit group and *when* word (:mod:`access_marks`)."""

    gid: Array
    group: Array
    when: Array
    tables: tuple[Rows, ...]
    left: Array  # lanes whose copy is not complete

    def end(self, lanes: Array, when: Array) -> None:
        for table in self.tables:
            table.rewrite(lanes, self.when, when)
        self.left &= ~lanes


class ReadsInFlight:
    """Reads by the cp.async copies of a CTA batch of ``threads`` threads. Commit groups are per thread."""

    def __init__(self, threads: int) -> None:
        self._committed = np.zeros(threads, np.int64)
        self._batches: list[_Batch] = []

    @property
    def under_way(self) -> bool:
        return bool(self._batches)

    def issue(self, gid: Array, when: Array) -> Array:
        """The *when* words to record until the copies are complete, by lane."""
        return in_group(when, self._committed[gid])

    def keep(self, gid: Array, when: Array, tables: tuple[Rows, ...]) -> None:
        self._batches.append(_Batch(gid, self._committed[gid], when, tables, np.ones(len(gid), np.bool_)))

    def commit(self, gid: Array) -> None:
        self._committed[gid] += 1

    def wait(self, gid: Array, pending: int, when: Array) -> None:
        """The threads ``gid`` have waited for all but their last ``pending`` groups, at ``when``."""
        if self.under_way:
            done = np.zeros(len(self._committed), np.int64)
            done[gid] = self._committed[gid] - pending
            now = np.zeros(len(self._committed), np.int64)
            now[gid] = when
            self._end(lambda batch: batch.group < done[batch.gid], now)

    def signal(self, gid: Array, column: Array, count: Array) -> None:
        """The copies that each thread of ``gid`` has issued so far complete when the mbarrier of its clock ``column``
        has completed ``count`` phases."""
        if self.under_way:
            mine = np.zeros(len(self._committed), np.bool_)
            mine[gid] = True
            now = np.zeros(len(self._committed), np.int64)
            now[gid] = landing(column, count)
            self._end(lambda batch: mine[batch.gid], now)

    def _end(self, complete: Callable[[_Batch], Array], now: Array) -> None:
        for batch in self._batches:
            if (lanes := complete(batch) & batch.left).any():
                batch.end(lanes, now[batch.gid])
        self._batches = [batch for batch in self._batches if batch.left.any()]

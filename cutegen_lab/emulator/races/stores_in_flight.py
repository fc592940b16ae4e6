"""Bulk copies to global memory that no thread has waited for (PTX ISA 9.7.9.25.4 cp.async.bulk, 9.7.9.25.6 wait_group).

Until the thread that issued a copy has waited for its bulk group (without ``.read``, which waits for the source alone),
no other access may touch the bytes that the copy writes. The end of the launch completes all copies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from cutegen_lab.emulator.races.access_marks import Rows


class StoresInFlight:
    """Bulk stores by the threads of a CTA batch. Bulk groups are per thread."""

    def __init__(self) -> None:
        self._committed: dict[int, int] = defaultdict(int)
        self._pending: dict[int, list[tuple[int, Rows]]] = defaultdict(list)

    def issue(self, gid: int, rows: Rows) -> int:
        """Thread ``gid`` issues a copy to ``rows``. Returns the number of its bulk group."""
        group = self._committed[gid]
        self._pending[gid].append((group, rows))
        return group

    def commit(self, gids: list[int]) -> None:
        for gid in gids:
            self._committed[gid] += 1

    def wait(self, gid: int, pending: int) -> Iterator[tuple[int, Rows]]:
        """Removes the copies in all but the last ``pending`` groups of thread ``gid``; yields (group, rows) of each."""
        if gid in self._pending:
            last = self._committed[gid] - pending
            found, self._pending[gid] = self._pending[gid], [p for p in self._pending[gid] if p[0] >= last]
            yield from (p for p in found if p[0] < last)

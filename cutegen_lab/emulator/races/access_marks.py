"""Records of accesses to global memory: two words of 63 bits for each cell, in tables for each buffer.

*What*: launch from 1 on, scope of a strong operation (0: a weak one), block in its grid, line of generated code.
*When*: column and lane of the thread as in :mod:`vector_clock`, and the count of its warp's clock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cutegen_lab.emulator.ptx.traits import Ordering
from cutegen_lab.emulator.ptx.types import Array

_LAUNCH, _SCOPE, _BLOCK = 46, 44, 20
_LINE_MASK, _BLOCK_MASK, _SCOPE_MASK = (1 << 20) - 1, (1 << 24) - 1, 3
_COLUMN, _LANE = 45, 40
_COUNT_MASK = (1 << _LANE) - 1
IN_FLIGHT = 1 << _LANE - 1
"""``IN_FLIGHT`` + the number of a bulk group stands for the clock in the record of a copy in flight; no warp's clock is
so large."""


class Marks(NamedTuple):
    """Accesses, by lane or by lane and cell. Where there was none, ``what`` is 0."""

    what: Array
    when: Array

    @property
    def launch(self) -> Array:
        return self.what >> _LAUNCH

    @property
    def scope(self) -> Array:
        """1 + the scope (:mod:`traits`) of a strong operation, 0 for a weak one."""
        return self.what >> _SCOPE & _SCOPE_MASK

    @property
    def block(self) -> Array:
        return self.what >> _BLOCK & _BLOCK_MASK

    @property
    def column(self) -> Array:
        return self.when >> _COLUMN

    @property
    def lane(self) -> Array:
        return self.when >> _LANE & 31

    @property
    def epoch(self) -> Array:
        return self.when & _COUNT_MASK

    def newest(self) -> int:
        """The latest launch among the accesses; 0 if there are none."""
        return int(np.maximum.reduce(self.what, axis=None, initial=0)) >> _LAUNCH

    def at(self, lane: int, cell: int) -> Mark:
        what, when = int(self.what[lane, cell]), int(self.when[lane, cell])
        thread = when >> _LANE
        return Mark(what >> _LAUNCH, what >> _BLOCK & _BLOCK_MASK, what & _LINE_MASK, thread, when & _COUNT_MASK)

    def lines(self) -> Array:
        return self.what & _LINE_MASK


class Mark(NamedTuple):
    """One access. ``thread``: number in its cluster, where the threads of a block are padded to whole warps."""

    launch: int
    block: int
    line: int
    thread: int
    epoch: int


def marks(launch: int, order: Ordering, block: Array, line: int, thread: Array, count: Array) -> Marks:
    """Records of current accesses, by lane."""
    scope = order.scope + 1 if order.strong else 0
    what = (launch << _LAUNCH | scope << _SCOPE | line) + ((block & _BLOCK_MASK) << _BLOCK)
    return Marks(what, thread << _LANE | count)


def in_flight(made: Marks, group: int) -> Marks:
    """The records of a bulk copy of ``group`` that is in flight."""
    return Marks(made.what, made.when & ~_COUNT_MASK | IN_FLIGHT + group)


def in_group(when: Array, group: Array) -> Array:
    """*When* words of cp.async copies in flight, by lane; ``group``: the commit group of each."""
    return np.asarray(when & ~_COUNT_MASK | IN_FLIGHT + group)


def landing(column: Array, count: Array) -> Array:
    """*When* of an access that completes with phase ``count`` of the mbarrier of ``column``."""
    return np.asarray(column << _COLUMN | count)


class Rows(NamedTuple):
    """A view of a table for accesses of one width, and the row of each lane."""

    what: Array
    when: Array
    row: Array

    def found(self) -> Marks:
        return Marks(self.what[self.row], self.when[self.row])

    def remember(self, made: Marks, backwards: bool = False) -> None:
        """Stores one access for each lane or cell. If lanes share a cell, the last one's is kept (``backwards``: the
        first one's)."""
        what, when = (m if m.ndim == 2 else m[:, None] for m in made)
        step = slice(None, None, -1) if backwards else slice(None)
        row = self.row[step]
        self.what[row], self.when[row] = what[step], when[step]

    def forget(self) -> None:
        self.what[self.row] = 0

    def rewrite(self, lanes: Array, before: Array, after: Array) -> None:
        """For ``lanes`` (a mask), changes the time of accesses from ``before`` to ``after``."""
        row = self.row[lanes]
        found = self.when[row]
        self.when[row] = np.where(found == before[lanes, None], after[lanes, None], found)

    def complete(self, group: int, epoch: int) -> None:
        """Sets the time of the copies of bulk ``group`` to ``epoch``, except in cells that were written since."""
        found = self.when[self.row]
        done = found & _COUNT_MASK == IN_FLIGHT + group
        self.when[self.row] = np.where(done, found & ~_COUNT_MASK | epoch, found)


def table(size: int, unit: int) -> Array:
    """A table for a buffer of ``size`` bytes in cells of ``unit`` bytes. Its pages take memory once they are written
    to."""
    return np.zeros((2, _cells(size, unit)), np.int64)


def table_bytes(size: int, unit: int) -> int:
    return 16 * _cells(size, unit)


def _cells(size: int, unit: int) -> int:
    return -(-size // 16) * 16 // unit


def rows(table: Array, row: Array, cells: int) -> Rows:
    """A view of ``table`` in rows of ``cells`` cells, and the ``row`` of each lane."""
    what, when = table.reshape(2, -1, cells)
    return Rows(what, when, row)

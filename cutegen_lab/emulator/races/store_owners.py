"""Which cluster of a launch stored to each cell of global memory. In a large run :class:`GlobalRaces` checks only a
few clusters; this finds conflicting stores of any two.

Only for kernels whose blocks cannot wait for each other: their stores are then unordered (PTX ISA 8.9.5), and the
result depends on which store is last. Stores of the same value, bulk copies and atomic operations are not checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.buffer import Buffer
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.shared_memory import differs
from cutegen_lab.emulator.roles import Blocks

MOST_BYTES = 512 << 20  # maximum size of a tensor's table


class StoreOwners:
    """``unit``: bytes of the plan's narrowest access. ``begin`` starts a launch, ``enter`` a CTA batch."""

    def __init__(self, unit: int) -> None:
        self._unit = unit
        self._before = self._clusters = 0  # number of clusters of earlier launches, and of this one
        self._mine: Array = np.zeros(0, np.int32)  # by block of the batch: a unique number of its cluster

    def table(self, size: int) -> Array | None:
        """The table of a buffer of ``size`` bytes (0: no store); None if it would exceed ``MOST_BYTES``."""
        cells = -(-size // self._unit)
        return None if 4 * cells > MOST_BYTES else np.zeros(cells, np.int32)

    def begin(self, clusters: int) -> None:
        self._before, self._clusters = self._before + self._clusters, clusters

    def enter(self, ctas: Blocks) -> None:
        self._threads = ctas.padded_threads
        self._mine = (1 + self._before + ctas.numbers // ctas.cluster_size).astype(np.int32)

    def store(self, buffer: Buffer, gid: Array, width: int, index: Array, value: Any) -> None:
        """Stores ``value`` at element ``index`` of ``buffer``. Raises Trap if another cluster stored another
        value there, or stores one with the same instruction."""
        assert buffer.owners is not None
        cells, k = buffer.views[width], width // self._unit
        owners = buffer.owners[: len(buffer.owners) // k * k].reshape(-1, k)
        mine = self._mine[gid // self._threads][:, None]
        before = owners[index]
        others = (before > self._before) & (before != mine)
        new = np.ascontiguousarray(np.broadcast_to(value, index.shape).astype(cells.dtype, copy=False))
        if others.any():
            self._check(buffer, gid, width, index, others & differs(cells[index], new, k), before)
        cells[index] = new
        owners[index] = mine
        after = owners[index]
        if (others := after != mine).any():
            self._check(buffer, gid, width, index, others & differs(cells[index], new, k), after)

    def _check(self, buffer: Buffer, gid: Array, width: int, index: Array, wrong: Array, whose: Array) -> None:
        if not wrong.any():
            return
        lane, cell = (int(at[0]) for at in np.nonzero(wrong))
        other, place = int(whose[lane, cell]) - 1 - self._before, int(index[lane]) * width + cell * self._unit
        message = (
            f"a race: writes something else where cluster {other} of the grid wrote, byte {place} of {buffer.name}, "
            "with no order between"
        )
        raise Trap(Verdict.NON_DETERMINISTIC, message, int(gid[lane]), buffer.base + place)

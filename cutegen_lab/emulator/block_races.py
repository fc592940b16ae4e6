"""Races for global memory between blocks and between launches: who wrote each place last, in which launch.

Blocks of different clusters are ordered by nothing but strong operations and fences (PTX ISA 8.9.5). In a kernel that
has none, a block may not read what another has written in the same launch, nor write something else there. A launch
that begins programmatically (CUDA C++ Programming Guide, "Programmatic Dependent Launch") may not touch what the launch
before it wrote until it has waited (PTX ISA 9.7.13.12 griddepcontrol). What the earlier launch reads is not remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.races import differs, generated_line
from cutegen_lab.emulator.types import Array

if TYPE_CHECKING:
    from cutegen_lab.emulator.chunk import Chunk
    from cutegen_lab.emulator.clocks import Clocks
    from cutegen_lab.emulator.memory import Buffer
    from cutegen_lab.emulator.program import Program

# A write in 63 bits: launch from 1 on, block in its grid from 1 on, line of generated code. 0: none yet.
_LAUNCH, _BLOCK = 44, 20
_LINE_MASK, _BLOCK_MASK = (1 << 20) - 1, (1 << 24) - 1


class BlockRaces:
    """Remembers the writes of a plan: of each launch that ``begin`` tells of, of each chunk that ``enter`` does.

    ``unit``: bytes of the plan's narrowest access.
    """

    def __init__(self, unit: int) -> None:
        self._unit = unit
        self._programs: list[Program] = []
        self._chunk: Chunk | None = None
        self._launch, self._pending = 0, 1  # launches from ``pending`` on may still run
        self._programmatic, self._waited = False, True

    def table(self, size: int) -> Array:
        """What a buffer of ``size`` bytes remembers."""
        return np.zeros(-(-size // 16) * 16 // self._unit, np.int64)

    def begin(self, program: Program, programmatic: bool) -> None:
        """The next launch. A programmatic one may overlap the one before, and those that this did not wait for."""
        self._leave()
        if not programmatic:
            self._pending = self._launch + 1
        elif self._waited:
            self._pending = max(self._launch, 1)
        self._launch += 1
        self._programs.append(program)
        self._programmatic, self._waited = programmatic, True

    def enter(self, chunk: Chunk) -> None:
        self._leave()
        self._chunk = chunk

    def _leave(self) -> None:
        if self._chunk is not None and self._programmatic:
            self._waited &= self._clocks(self._chunk).every_block_waited()
        self._chunk = None

    def load(self, buffer: Buffer, gid: Array, address: Array, width: int) -> None:
        """Before ``width`` bytes are read."""
        table, rows = self._rows(buffer, address, width)
        self._check(buffer, gid, address, table[rows], None)

    def store(self, buffer: Buffer, gid: Array, address: Array, width: int, index: Array, value: Any) -> None:
        """Stores ``value`` at element ``index``."""
        cells = buffer.views[width]
        new = np.ascontiguousarray(np.broadcast_to(value, index.shape).astype(cells.dtype, copy=False))
        table, rows = self._rows(buffer, address, width)
        self._check(buffer, gid, address, table[rows], differs(cells[index], new, width // self._unit))
        cells[index] = new
        self._record(gid, table, rows)
        self._check(
            buffer, gid, address, table[rows], differs(cells[index], new, width // self._unit)
        )  # several wrote at once

    def update(self, buffer: Buffer, gid: Array, address: Array, width: int) -> None:
        """Before an atomic operation."""
        table, rows = self._rows(buffer, address, width)
        self._check(buffer, gid, address, table[rows], None)
        self._record(gid, table, rows)

    def _record(self, gid: Array, table: Array, rows: Array) -> None:
        m = self._here()
        block = m.numbers[gid // m.padded_threads] + 1 & _BLOCK_MASK
        table[rows] = (self._launch << _LAUNCH | block << _BLOCK | generated_line(m.program))[:, None]

    def _check(self, buffer: Buffer, gid: Array, address: Array, found: Array, changes: Array | None) -> None:
        """Traps where what was ``found`` [lanes, cells] is not over yet. ``changes``: None for a read."""
        m, launch = self._here(), found >> _LAUNCH
        if self._pending < self._launch:
            early = (launch >= self._pending) & (launch < self._launch)
            early &= ~self._clocks(m).waited(gid >> 5)[:, None]
            self._early(buffer, gid, address, early if changes is None else early & changes, found, changes is None)
        if not m.program.blocks_may_wait:
            mine = m.numbers[gid // m.padded_threads] // m.cluster_size
            race = (launch == self._launch) & (_block(found) // m.cluster_size != mine[:, None])
            self._race(buffer, gid, address, race if changes is None else race & changes, found, changes is None)

    def _early(self, buffer: Buffer, gid: Array, address: Array, bad: Array, found: Array, reads: bool) -> None:
        if bad.any():
            gid_at, at, past = self._first(gid, address, bad, found)
            launch, does = past >> _LAUNCH, "reads" if reads else "writes"
            message = (
                f"{does} byte {at - buffer.base} of {buffer.name} before griddepcontrol.wait, "
                f"and launch {launch} ({self._programs[launch - 1].name}) wrote it"
            )
            verdict = Verdict.UNINITIALISED_READ if reads else Verdict.NON_DETERMINISTIC
            raise self._trap(verdict, message, gid_at, at, past)

    def _race(self, buffer: Buffer, gid: Array, address: Array, bad: Array, found: Array, reads: bool) -> None:
        if bad.any():
            gid_at, at, past = self._first(gid, address, bad, found)
            block, does = (
                self._here().coordinates(_block(past)),
                "reads what" if reads else "writes something else where",
            )
            message = (
                f"a race: {does} block {block} wrote, byte {at - buffer.base} of {buffer.name}, with no order between"
            )
            raise self._trap(Verdict.NON_DETERMINISTIC, message, gid_at, at, past)

    def _first(self, gid: Array, address: Array, bad: Array, found: Array) -> tuple[int, int, int]:
        """(thread, address, earlier write) of the first that is ``bad`` [lanes, cells]."""
        lane, cell = (int(v[0]) for v in np.nonzero(bad))
        return int(gid[lane]), int(address[lane]) + cell * self._unit, int(found[lane, cell])

    def _trap(self, verdict: Verdict, message: str, gid: int, address: int, past: int) -> Trap:
        trap = Trap(verdict, message, gid, address)
        trap.earlier = self._programs[(past >> _LAUNCH) - 1].source_map.get(past & _LINE_MASK)
        return trap

    def _rows(self, buffer: Buffer, address: Array, width: int) -> tuple[Array, Array]:
        """(what is remembered, by accesses of ``width``; the row of each lane)."""
        assert buffer.writers is not None
        return buffer.writers.reshape(-1, width // self._unit), (address - np.uint64(buffer.base)).view(
            np.int64
        ) // width

    def _here(self) -> Chunk:
        assert self._chunk is not None
        return self._chunk

    def _clocks(self, m: Chunk) -> Clocks:
        assert m.clocks is not None
        return m.clocks


def _block(found: Any) -> Any:
    """Block number of what was found."""
    return (found >> _BLOCK & _BLOCK_MASK) - 1

"""Races for global memory between blocks and between launches: who wrote each place last, in which launch.

Blocks of different clusters are ordered by nothing but releases and acquires at the scope of the GPU (PTX ISA 8.9.5),
which :mod:`causality` follows. Without, a block may not read what another has written in the same launch, nor write
something else there, unless both do so by strong operations; a plain read of what those wrote, as a loop around
compare-and-swap begins with, is not held against anyone. Order is not followed in grids of very many warps. A launch
that begins programmatically (CUDA C++ Programming Guide, "Programmatic Dependent Launch") may not touch what the launch
before it wrote until it has waited (PTX ISA 9.7.13.12 griddepcontrol). What the earlier launch reads is not remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.causality import Left
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.races import differs, generated_line, order_at
from cutegen_lab.emulator.traits import GRID, Ordering
from cutegen_lab.emulator.types import Array

if TYPE_CHECKING:
    from cutegen_lab.emulator.chunk import Chunk
    from cutegen_lab.emulator.clocks import Clocks
    from cutegen_lab.emulator.memory import Buffer
    from cutegen_lab.emulator.program import Program

# A write in 63 bits: launch from 1 on, strong?, block in its grid from 1 on, line of generated code. 0: none yet.
_LAUNCH, _STRONG, _BLOCK = 45, 44, 20
_LINE_MASK, _BLOCK_MASK = (1 << 20) - 1, (1 << 24) - 1
_WARP = 40  # beside it: warp in the grid, count of its clock
_COUNT_MASK = (1 << _WARP) - 1


class _Rows(NamedTuple):
    """What a buffer remembers, by accesses of one width, and the row of each lane."""

    writes: Array
    times: Array
    row: Array

    def remember(self, write: Array, time: Array | None) -> None:
        self.writes[self.row] = write[:, None]
        if time is not None:
            self.times[self.row] = time[:, None]


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
        self._left: Left = {}

    def table(self, size: int) -> Array:
        """What a buffer of ``size`` bytes remembers: of each cell two words."""
        return np.zeros((2, -(-size // 16) * 16 // self._unit), np.int64)

    def begin(self, program: Program, programmatic: bool) -> None:
        """The next launch. A programmatic one may overlap the one before, and those that this did not wait for."""
        self._leave()
        if not programmatic:
            self._pending = self._launch + 1
        elif self._waited:
            self._pending = max(self._launch, 1)
        self._launch += 1
        self._programs.append(program)
        self._left = {}
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
        m = self._here()
        if m.causality is not None and self._left and (order := self._order()).strong:
            m.causality.read(self._left, gid >> 5, address, order)
        self._check(buffer, gid, address, self._rows(buffer, address, width), None)

    def store(self, buffer: Buffer, gid: Array, address: Array, width: int, index: Array, value: Any) -> None:
        """Stores ``value`` at element ``index``."""
        m, cells, k = self._here(), buffer.views[width], width // self._unit
        new = np.ascontiguousarray(np.broadcast_to(value, index.shape).astype(cells.dtype, copy=False))
        found = self._rows(buffer, address, width)
        self._check(buffer, gid, address, found, differs(cells[index], new, k))
        cells[index] = new
        found.remember(*self._now(gid))
        self._check(buffer, gid, address, found, differs(cells[index], new, k))  # several wrote at once
        if m.causality is not None and (order := self._order()).strong:
            m.causality.write(self._left, gid >> 5, address, order)

    def update(self, buffer: Buffer, gid: Array, address: Array, width: int) -> None:
        """Before an atomic operation."""
        m, found, now = self._here(), self._rows(buffer, address, width), self._now(gid)
        if m.causality is not None:
            m.causality.update(self._left, gid >> 5, address, self._order())
        self._check(buffer, gid, address, found, None)
        found.remember(*now)

    def _order(self) -> Ordering:
        program = self._here().program
        return order_at(program, generated_line(program))

    def _now(self, gid: Array) -> tuple[Array, Array | None]:
        """What is remembered of a write by the threads ``gid``: who and where, and when if that matters."""
        m = self._here()
        number, line = m.numbers[gid // m.padded_threads], generated_line(m.program)
        strong = _reaches_the_grid(order_at(m.program, line))
        write = self._launch << _LAUNCH | strong << _STRONG | (number + 1 & _BLOCK_MASK) << _BLOCK | line
        clocks = self._clocks(m)
        if not clocks.follows_grid:
            return write, None
        warp = number * clocks.warps + gid % m.padded_threads // 32
        return write, warp << _WARP | clocks.now(gid >> 5)

    def _check(self, buffer: Buffer, gid: Array, address: Array, at: _Rows, changes: Array | None) -> None:
        """Traps where what is found ``at`` some cells [lanes, cells] is not over yet. ``changes``: None for a read."""
        m, found = self._here(), at.writes[at.row]
        launch = found >> _LAUNCH
        if self._pending < self._launch:
            early = (launch >= self._pending) & (launch < self._launch)
            early &= ~self._clocks(m).waited(gid >> 5)[:, None]
            self._early(buffer, gid, address, early if changes is None else early & changes, found, changes is None)
        if m.program.blocks_may_wait and not self._clocks(m).follows_grid:
            return
        mine = m.numbers[gid // m.padded_threads] // m.cluster_size
        race = (launch == self._launch) & (_block(found) // m.cluster_size != mine[:, None])
        if changes is not None:
            race &= changes
        if race.any():
            self._race(buffer, gid, address, race & ~self._ordered(m, gid, at, changes is None), found, changes is None)

    def _ordered(self, m: Chunk, gid: Array, at: _Rows, reads: bool) -> Array:
        """Which of the writes found ``at`` some cells may what the threads do now meet?"""
        strong = (at.writes[at.row] >> _STRONG & 1 != 0) & (reads or _reaches_the_grid(self._order()))
        if (clocks := self._clocks(m)).follows_grid:
            time = at.times[at.row]
            strong |= clocks.known[(gid >> 5)[:, None], clocks.grid + (time >> _WARP)] >= time & _COUNT_MASK
        return np.asarray(strong)

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

    def _rows(self, buffer: Buffer, address: Array, width: int) -> _Rows:
        assert buffer.writers is not None
        row = (address - np.uint64(buffer.base)).view(np.int64) // width
        writes, times = buffer.writers.reshape(2, -1, width // self._unit)
        return _Rows(writes, times, row)

    def _here(self) -> Chunk:
        assert self._chunk is not None
        return self._chunk

    def _clocks(self, m: Chunk) -> Clocks:
        assert m.clocks is not None
        return m.clocks


def _block(found: Any) -> Any:
    """Block number of what was found."""
    return (found >> _BLOCK & _BLOCK_MASK) - 1


def _reaches_the_grid(order: Ordering) -> bool:
    return order.strong and order.scope == GRID

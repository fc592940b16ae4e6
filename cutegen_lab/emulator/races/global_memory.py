"""Races in global memory: between threads of a block, of a cluster, of a launch, and between launches.

Two accesses of one launch, one of them a write, race unless they are ordered (:mod:`vector_clock`, :mod:`causality`) or
both are strong at a scope that includes both threads (PTX ISA 8.7.1 "Races"). Only releases and acquires at the scope
of the GPU order blocks of different clusters (8.9.5); in very large grids that order is tracked for some clusters only.
A write of the same value is no race, nor is the plain read of a compare-and-swap's expected value (CUDA C++ Programming
Guide, "Atomic Functions"). The last writer and two readers of each cell are recorded. Copies are in flight until they
have been waited for, and a bulk copy sees writes of threads only after a proxy fence (8.4 "Proxies"). Until it has
waited (PTX ISA 9.7.13.12 griddepcontrol), a programmatic launch (CUDA C++ Programming Guide, "Programmatic Dependent
Launch") may not read bytes that the previous launch writes, nor write bytes that the previous launch accesses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator.buffer import Buffer
from cutegen_lab.emulator.faults import Trap
from cutegen_lab.emulator.ptx.traits import CLUSTER, CTA, GRID, compares
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races import access_marks
from cutegen_lab.emulator.races.access_marks import IN_FLIGHT, Mark, Marks, Rows
from cutegen_lab.emulator.races.causality import Left
from cutegen_lab.emulator.races.launch_overlap import LaunchOverlap
from cutegen_lab.emulator.races.reads_in_flight import ReadsInFlight
from cutegen_lab.emulator.races.shared_memory import differs, generated_line, order_at
from cutegen_lab.emulator.races.stores_in_flight import StoresInFlight
from cutegen_lab.emulator.races.vector_clock import VectorClocks
from cutegen_lab.emulator.races.watched import WatchedBlocks
from cutegen_lab.emulator.roles import GeneratedCode, HasLanes

WROTE, READ = "wrote", "read"


class GlobalRaces:
    """Records the accesses of a plan. ``begin`` starts a launch, ``enter`` a CTA batch.

    ``unit``: bytes of the plan's narrowest access. Constant buffers are not tracked, nor those whose table would have
    more than ``most`` bytes.
    """

    def __init__(self, unit: int, most: int | None = None) -> None:
        self._unit, self._most = unit, most
        self._programs: list[GeneratedCode] = []
        self._ctas: WatchedBlocks | None = None
        self._overlap = LaunchOverlap()
        self._left: Left = {}
        self.stores, self.reads = StoresInFlight(), ReadsInFlight(0)

    def table(self, size: int) -> Array | None:
        """The table of last writers for a buffer of ``size`` bytes; None if such a buffer is not tracked."""
        if self._most is not None and access_marks.table_bytes(size, self._unit) > self._most:
            return None
        return access_marks.table(size, self._unit)

    def begin(self, program: GeneratedCode, programmatic: bool) -> None:
        """Starts the next launch."""
        self._leave()
        self._overlap.begin(programmatic)
        self._programs.append(program)
        self._left = {}

    def enter(self, ctas: WatchedBlocks) -> None:
        """Starts a CTA batch, which must have clocks."""
        self._leave()
        self._ctas, self.stores, self.reads = ctas, StoresInFlight(), ReadsInFlight(len(ctas.exited))

    def _leave(self) -> None:
        if self._ctas is not None:
            self._overlap.leave(self._clocks(self._ctas))
        self._ctas = None

    @property
    def _launch(self) -> int:
        return self._overlap.launch

    def load(self, buffer: Buffer, g: HasLanes, address: Array, width: int) -> None:
        """Checks and records a read of ``width`` bytes; called before it. The read of a copy is recorded as in flight
        until the copy is complete."""
        ctas, gid = self._here(), g.gid
        made = self._now(gid)
        if g.hardware:
            past = self._writes(buffer, address, width).found()
            self._check(buffer, gid, address, past, made, None, WROTE)
            self._check_proxy(buffer, gid, address, past, "reads")
            if g.until is not None:
                when = np.broadcast_to(access_marks.landing(*map(np.asarray, g.until)), gid.shape)
                last, other = self._reads(buffer, address, width, make=True)
                self._remember_read(ctas, gid, Marks(made.what, when), last, other)
            return
        if ctas.causality is not None and self._left and (order := self._order()).strong:
            ctas.causality.read(self._left, gid, address, order)
        self._check(buffer, gid, address, self._writes(buffer, address, width).found(), made, None, WROTE)
        last, other = self._reads(buffer, address, width, make=True)
        if g.copies:
            made = Marks(made.what, self.reads.issue(gid, made.when))
            self.reads.keep(gid, made.when, (last, other))
        self._remember_read(ctas, gid, made, last, other)

    def store(
        self, buffer: Buffer, gid: Array, address: Array, width: int, index: Array, value: Any, hardware: bool = False
    ) -> None:
        """Checks and records a store, and stores ``value`` at element ``index``."""
        ctas, cells, k, made = self._here(), buffer.views[width], width // self._unit, self._now(gid)
        new = np.ascontiguousarray(np.broadcast_to(value, index.shape).astype(cells.dtype, copy=False))
        changes = differs(cells[index], new, k)
        writes = self._check_write(buffer, gid, address, width, made, changes)
        if hardware:
            self._check_proxy(buffer, gid, address, writes.found(), "writes")
            made = access_marks.in_flight(made, self.stores.issue(int(gid[0]), writes))
        cells[index] = new
        writes.remember(made)
        if (lost := differs(cells[index], new, k)).any():  # several lanes store different values to one cell
            self._check(buffer, gid, address, writes.found(), made, lost, WROTE)
        if ctas.causality is not None and not hardware and (order := self._order()).strong:
            ctas.causality.write(self._left, gid, address, order)

    def update(self, buffer: Buffer, gid: Array, address: Array, width: int) -> None:
        """Checks and records an atomic operation; called before it is performed."""
        ctas, made = self._here(), self._now(gid)
        if ctas.causality is not None:
            ctas.causality.update(self._left, gid, address, self._order())
        writes = self._check_write(buffer, gid, address, width, made, None)
        writes.remember(made)
        self._check(buffer, gid, address, writes.found(), made, np.ones((len(gid), 1), np.bool_), WROTE)

    def stores_done(self, gid: Array, pending: int) -> None:
        """The threads ``gid`` have waited for all but their last ``pending`` bulk groups."""
        clocks = self._clocks(self._here())
        for thread in gid.tolist():
            for group, rows in self.stores.wait(thread, pending):
                rows.complete(group, int(clocks.now(np.array([thread >> 5]))[0]))

    def copies_done(self, gid: Array, pending: int) -> None:
        """The threads ``gid`` have waited for all but their last ``pending`` groups of cp.async."""
        self.reads.wait(gid, pending, self._now(gid).when)

    @property
    def meets_others(self) -> bool:
        """True if work before the plan's first launch may still run."""
        return self._overlap.meets_others

    def require_alone(self, buffer: Buffer, gid: Array, address: Array, *, reads: bool) -> None:
        """Traps if a thread uses a tensor while work before the plan's first launch may still run."""
        waited = self._clocks(self._here()).waited(gid)
        beside = np.flatnonzero(self._overlap.beside_others(waited))
        if len(beside):
            at, verdict = int(beside[0]), Verdict.UNINITIALISED_READ if reads else Verdict.NON_DETERMINISTIC
            when = "before griddepcontrol.wait"
            if waited[at]:
                when = f"after griddepcontrol.wait for launch {self._launch - 1}, which did not itself wait"
            message = (
                f"{'reads' if reads else 'writes'} byte {int(address[at]) - buffer.base} of {buffer.name} {when}: the "
                "first launch is programmatic, so the producer of its inputs, or the previous call, may still run"
            )
            raise Trap(verdict, message, int(gid[at]), int(address[at]))

    def _check_write(
        self, buffer: Buffer, gid: Array, address: Array, width: int, made: Marks, changes: Array | None
    ) -> Rows:
        """Checks a write, and clears the recorded readers. ``changes`` [lanes, cells]: the cells that get another
        value; None for an atomic operation."""
        writes = self._writes(buffer, address, width)
        self._check(buffer, gid, address, writes.found(), made, changes, WROTE)
        for reads in self._reads(buffer, address, width, make=False):
            whatever = np.ones((len(gid), 1), np.bool_) if changes is None else changes
            self._check(buffer, gid, address, reads.found(), made, whatever, READ)
            reads.forget()
        return writes

    def _remember_read(self, ctas: WatchedBlocks, gid: Array, made: Marks, last: Rows, other: Rows) -> None:
        """Records this reader and one earlier reader that is not ordered before it: the last, or with interleaved warps
        the first."""
        kept = Marks(*(word[:, None] for word in made))
        for table in (last, other) if ctas.warps_seed else (other, last):
            found = table.found()
            if found.newest() >= self._overlap.first:
                late = (found.launch >= self._overlap.first) & (found.launch < self._launch)
                late |= (found.launch == self._launch) & self._unordered(ctas, gid, found)
                kept = Marks(*(np.where(late, a, b) for a, b in zip(found, kept, strict=True)))
        other.remember(kept, backwards=True)  # of lanes that read the same cell, this keeps the first
        last.remember(made)  # of lanes that read the same cell, this keeps the last

    def _order(self) -> Any:
        program = self._here().program
        return order_at(program, generated_line(program))

    def _now(self, gid: Array) -> Marks:
        """The records of the current access by the threads ``gid``."""
        ctas, line = self._here(), generated_line(self._here().program)
        clocks, order = self._clocks(ctas), order_at(ctas.program, line)
        block = ctas.numbers[gid // ctas.padded_threads]
        thread = gid % (clocks.size * 32)
        return access_marks.marks(self._launch, order, block, line, thread, clocks.now(gid >> 5))

    def _check(
        self, buffer: Buffer, gid: Array, address: Array, past: Marks, made: Marks, changes: Array | None, did: str
    ) -> None:
        """Traps if one of the accesses ``past`` [lanes, cells] is not ordered before the current one. ``changes``: None
        for a read."""
        if past.newest() < self._overlap.first:
            return
        ctas, launch = self._here(), past.launch
        if self._overlap.before:
            waited = self._clocks(ctas).waited(gid)[:, None]
            early = np.isin(launch, list(self._overlap.before)) & ~waited
            if self._overlap.after:
                early |= np.isin(launch, list(self._overlap.after)) & waited
            early = early if changes is None else early & changes
            if early.any():
                raise self._early(buffer, gid, address, early, past, changes is None, did)
        race = launch == self._launch
        if changes is not None:
            race = race & changes
        if race.any():
            race = race & self._unordered(ctas, gid, past) & ~self._both_strong(ctas, gid, past, made)
        if race.any():
            race = race & ~self._guessed(past)
        if race.any():
            raise self._race(buffer, gid, address, race, past, changes is None, did)

    def _unordered(self, ctas: WatchedBlocks, gid: Array, past: Marks) -> Array:
        """Mask [lanes, cells] of accesses of this launch that are not ordered before the lane's current access."""
        clocks, warp, mine = self._clocks(ctas), (gid >> 5)[:, None], (gid % (self._clocks(ctas).size * 32))[:, None]
        cluster = past.block // ctas.cluster_size
        home = cluster == (ctas.numbers[gid // ctas.padded_threads] // ctas.cluster_size)[:, None]
        column, epoch = past.column, past.epoch
        late = clocks.unknown(gid[:, None], column, past.lane, epoch)
        late |= (column == mine >> 5) & clocks.lanes.unmet(warp, mine & 31, past.lane, epoch)
        if home.all():
            return late
        if clocks.follows_grid:
            warps = column < clocks.size  # order of copies is not tracked between clusters
            at, followed = clocks.column_in_grid(cluster, np.where(warps, column, 0))
            far = followed & warps & (clocks.knows(gid[:, None], at) < epoch)
        else:
            far = np.ones(late.shape, np.bool_)
        return np.where(home, late, far)

    def _check_proxy(self, buffer: Buffer, gid: Array, address: Array, past: Marks, does: str) -> None:
        """Traps if a bulk copy accesses bytes that a thread wrote in this launch, with no proxy fence between. For
        writes of other clusters the only check is that the kernel has such a fence."""
        if past.newest() < self._launch:
            return
        ctas, clocks = self._here(), self._clocks(self._here())
        home = (
            past.block // ctas.cluster_size == (ctas.numbers[gid // ctas.padded_threads] // ctas.cluster_size)[:, None]
        )
        unseen = clocks.unknown(gid[:, None], past.column, past.lane, past.epoch, clocks.fenced_global)
        bad = (past.launch == self._launch) & np.where(home, unseen, not ctas.program.fences_global_proxy)
        if bad.any():
            lines = past.lines()
            own = [
                n for n in np.unique(lines[bad]).tolist() if (i := ctas.program.source_map.get(n)) and i.opcode == "cp"
            ]
            bad &= ~np.isin(lines, own)  # writes of bulk copies need no proxy fence
        if bad.any():
            gid_at, at, mark = self._first(gid, address, bad, past)
            message = (
                f"{does} byte {at - buffer.base} of {buffer.name} by a bulk copy, with no fence.proxy.async after the "
                f"write by block {ctas.coordinates(mark.block)}"
            )
            raise self._trap(Verdict.NON_DETERMINISTIC, message, gid_at, at, mark)

    def _both_strong(self, ctas: WatchedBlocks, gid: Array, past: Marks, made: Marks) -> Array:
        """Mask of pairs of strong operations whose scopes include both threads: they do not race."""
        block = ctas.numbers[gid // ctas.padded_threads][:, None]
        near = np.where(past.block // ctas.cluster_size == block // ctas.cluster_size, CLUSTER, GRID)
        needed = np.where(past.block == block, CTA, near)
        return np.asarray(np.minimum(past.scope, made.scope[:, None]) > needed)

    def _guessed(self, past: Marks) -> Array:
        """Mask of pairs of a compare-and-swap and the plain read of its expected value: they do not race."""
        program = self._here().program
        if not program.guesses:
            return np.zeros(past.what.shape, np.bool_)
        now, lines = program.source_map.get(generated_line(program)), past.lines()
        wanted = [
            line for line in np.unique(lines).tolist() if (then := program.source_map.get(line)) is not None and now
            and ((compares(then) and now in program.guesses) or (compares(now) and then in program.guesses))
        ]  # fmt: skip
        return np.isin(lines, wanted)

    def _early(
        self, buffer: Buffer, gid: Array, address: Array, bad: Array, past: Marks, reads: bool, did: str
    ) -> Trap:
        gid_at, at, mark = self._first(gid, address, bad, past)
        does, name = "reads" if reads else "writes", self._programs[mark.launch - 1].name
        when = "before griddepcontrol.wait, and"
        if self._clocks(self._here()).waited(np.array([gid_at])).all():
            when = f"after griddepcontrol.wait for launch {self._launch - 1}, which did not itself wait until"
        message = (
            f"{does} byte {at - buffer.base} of {buffer.name} {when} "
            f"launch {mark.launch} ({name}) {'wrote' if did == WROTE else 'reads'} it"
        )
        verdict = Verdict.UNINITIALISED_READ if reads else Verdict.NON_DETERMINISTIC
        return self._trap(verdict, message, gid_at, at, mark)

    def _race(self, buffer: Buffer, gid: Array, address: Array, bad: Array, past: Marks, reads: bool, did: str) -> Trap:
        ctas = self._here()
        gid_at, at, mark = self._first(gid, address, bad, past)
        who = f"block {ctas.coordinates(mark.block)}"
        if mark.block == ctas.numbers[gid_at // ctas.padded_threads]:
            who = f"thread {ctas.place(mark.thread % ctas.padded_threads)[1]} of its own block"
        does = "reads what" if reads else ("writes something else where" if did == WROTE else "overwrites what")
        where, between = f"byte {at - buffer.base} of {buffer.name}", "with no order between"
        if did == READ and (mark.epoch >= IN_FLIGHT or mark.thread >> 5 >= self._clocks(ctas).size):
            who, did, between = "a copy", "reads", "which nobody has waited for"
        elif mark.epoch >= IN_FLIGHT:
            did, between = "has a bulk copy write", "which nobody has waited for (.read waits for the source only)"
        message = f"a race: {does} {who} {did}, {where}, {between}"
        return self._trap(Verdict.NON_DETERMINISTIC, message, gid_at, at, mark)

    def _first(self, gid: Array, address: Array, bad: Array, past: Marks) -> tuple[int, int, Mark]:
        """(thread, address, earlier access) of the first access that is ``bad`` [lanes, cells]."""
        lane, cell = (int(v[0]) for v in np.nonzero(np.broadcast_to(bad, past.what.shape)))
        return int(gid[lane]), int(address[lane]) + cell * self._unit, past.at(lane, cell)

    def _trap(self, verdict: Verdict, message: str, gid: int, address: int, mark: Mark) -> Trap:
        trap = Trap(verdict, message, gid, address)
        trap.earlier = self._programs[mark.launch - 1].source_map.get(mark.line)
        return trap

    def _writes(self, buffer: Buffer, address: Array, width: int) -> Rows:
        assert buffer.writers is not None
        row = (address - np.uint64(buffer.base)).view(np.int64) // width
        return access_marks.rows(buffer.writers, row, width // self._unit)

    def _reads(self, buffer: Buffer, address: Array, width: int, make: bool) -> tuple[Rows, ...]:
        """(last readers, other readers); empty if there are none and ``make`` is False."""
        if buffer.readers is None:
            if not make:
                return ()
            size = len(buffer.data)
            buffer.readers = access_marks.table(size, self._unit), access_marks.table(size, self._unit)
        row = (address - np.uint64(buffer.base)).view(np.int64) // width
        last, other = (access_marks.rows(table, row, width // self._unit) for table in buffer.readers)
        return last, other

    def _here(self) -> WatchedBlocks:
        assert self._ctas is not None
        return self._ctas

    def _clocks(self, ctas: WatchedBlocks) -> VectorClocks:
        assert ctas.clocks is not None
        return ctas.clocks

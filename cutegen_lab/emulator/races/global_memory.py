"""Races for global memory: between threads of a block, of a cluster, of a launch, and between launches.

Two accesses of one launch, one of them a write, race unless an order stands between them (:mod:`vector_clock`,
:mod:`causality`) or both are strong at a scope that takes in both threads (PTX ISA 8.7.1 "Races"). Blocks of different
clusters are ordered by nothing but releases and acquires at the scope of the GPU (8.9.5); in grids of very many warps
that order is followed for some clusters. A write of the value that is there is no race, nor is the plain read
that guesses what a compare-and-swap will find (CUDA C++ Programming Guide, "Atomic Functions"). Of each cell the last
writer and two readers are remembered. Copies from and to memory are under way until they have been waited for, and no
bulk copy sees what threads wrote without a proxy fence (8.4 "Proxies"). A launch that begins programmatically
(CUDA C++ Programming Guide, "Programmatic Dependent Launch") may not read what the launch before it wrote, nor write
what it touched, until it has waited (PTX ISA 9.7.13.12 griddepcontrol).
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
    """Remembers the accesses of a plan: of each launch that ``begin`` tells of, of each chunk that ``enter`` does.

    ``unit``: bytes of the plan's narrowest access. Buffers that nobody may write are not followed, nor those for which
    more than ``most`` bytes would be remembered.
    """

    def __init__(self, unit: int, most: int | None = None) -> None:
        self._unit, self._most = unit, most
        self._programs: list[GeneratedCode] = []
        self._chunk: WatchedBlocks | None = None
        self._overlap = LaunchOverlap()
        self._left: Left = {}
        self.stores, self.reads = StoresInFlight(), ReadsInFlight(0)

    def table(self, size: int) -> Array | None:
        """What is remembered of a buffer of ``size`` bytes."""
        if self._most is not None and access_marks.table_bytes(size, self._unit) > self._most:
            return None
        return access_marks.table(size, self._unit)

    def begin(self, program: GeneratedCode, programmatic: bool) -> None:
        """The next launch."""
        self._leave()
        self._overlap.begin(programmatic)
        self._programs.append(program)
        self._left = {}

    def enter(self, chunk: WatchedBlocks) -> None:
        """``chunk`` has clocks."""
        self._leave()
        self._chunk, self.stores, self.reads = chunk, StoresInFlight(), ReadsInFlight(len(chunk.exited))

    def _leave(self) -> None:
        if self._chunk is not None:
            self._overlap.leave(self._clocks(self._chunk))
        self._chunk = None

    @property
    def _launch(self) -> int:
        return self._overlap.launch

    def load(self, buffer: Buffer, g: HasLanes, address: Array, width: int) -> None:
        """Before ``width`` bytes are read. Until a copy is complete, nothing that its thread does comes after it."""
        m, gid = self._here(), g.gid
        made = self._now(gid)
        if g.hardware:
            past = self._writes(buffer, address, width).found()
            self._check(buffer, gid, address, past, made, None, WROTE)
            self._check_proxy(buffer, gid, address, past, "reads")
            if g.until is not None:
                when = np.broadcast_to(access_marks.landing(*map(np.asarray, g.until)), gid.shape)
                last, other = self._reads(buffer, address, width, make=True)
                self._remember_read(m, gid, Marks(made.what, when), last, other)
            return
        if m.causality is not None and self._left and (order := self._order()).strong:
            m.causality.read(self._left, gid, address, order)
        self._check(buffer, gid, address, self._writes(buffer, address, width).found(), made, None, WROTE)
        last, other = self._reads(buffer, address, width, make=True)
        if g.copies:
            made = Marks(made.what, self.reads.issue(gid, made.when))
            self.reads.keep(gid, made.when, (last, other))
        self._remember_read(m, gid, made, last, other)

    def store(
        self, buffer: Buffer, gid: Array, address: Array, width: int, index: Array, value: Any, hardware: bool = False
    ) -> None:
        """Stores ``value`` at element ``index``."""
        m, cells, k, made = self._here(), buffer.views[width], width // self._unit, self._now(gid)
        new = np.ascontiguousarray(np.broadcast_to(value, index.shape).astype(cells.dtype, copy=False))
        changes = differs(cells[index], new, k)
        writes = self._check_write(buffer, gid, address, width, made, changes)
        if hardware:
            self._check_proxy(buffer, gid, address, writes.found(), "writes")
            made = access_marks.in_flight(made, self.stores.issue(int(gid[0]), writes))
        cells[index] = new
        writes.remember(made)
        if (lost := differs(cells[index], new, k)).any():  # several wrote at once
            self._check(buffer, gid, address, writes.found(), made, lost, WROTE)
        if m.causality is not None and not hardware and (order := self._order()).strong:
            m.causality.write(self._left, gid, address, order)

    def update(self, buffer: Buffer, gid: Array, address: Array, width: int) -> None:
        """Before an atomic operation."""
        m, made = self._here(), self._now(gid)
        if m.causality is not None:
            m.causality.update(self._left, gid, address, self._order())
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
        """Whether what came before the plan's first launch may still run."""
        return self._overlap.meets_others

    def require_alone(self, buffer: Buffer, gid: Array, address: Array, *, reads: bool) -> None:
        """Traps where threads use a tensor while what came before the plan's first launch may still run."""
        waited = self._clocks(self._here()).waited(gid)
        beside = np.flatnonzero(self._overlap.beside_others(waited))
        if len(beside):
            at, verdict = int(beside[0]), Verdict.UNINITIALISED_READ if reads else Verdict.NON_DETERMINISTIC
            when = "before griddepcontrol.wait"
            if waited[at]:
                when = f"after griddepcontrol.wait for launch {self._launch - 1}, which did not itself wait"
            message = (
                f"{'reads' if reads else 'writes'} byte {int(address[at]) - buffer.base} of {buffer.name} {when}: the "
                "first launch is programmatic, so that what makes its inputs, or the call before it, may still run"
            )
            raise Trap(verdict, message, int(gid[at]), int(address[at]))

    def _check_write(
        self, buffer: Buffer, gid: Array, address: Array, width: int, made: Marks, changes: Array | None
    ) -> Rows:
        """Before a write; ``changes`` [lanes, cells], None for an atomic operation. What was read counts no longer."""
        writes = self._writes(buffer, address, width)
        self._check(buffer, gid, address, writes.found(), made, changes, WROTE)
        for reads in self._reads(buffer, address, width, make=False):
            whatever = np.ones((len(gid), 1), np.bool_) if changes is None else changes
            self._check(buffer, gid, address, reads.found(), made, whatever, READ)
            reads.forget()
        return writes

    def _remember_read(self, m: WatchedBlocks, gid: Array, made: Marks, last: Rows, other: Rows) -> None:
        """Of readers that nothing orders before this one, one is kept beside it: the last, or else the first."""
        kept = Marks(*(word[:, None] for word in made))
        for table in (last, other) if m.warps_seed else (other, last):
            found = table.found()
            if found.newest() >= self._overlap.first:
                late = (found.launch >= self._overlap.first) & (found.launch < self._launch)
                late |= (found.launch == self._launch) & self._unordered(m, gid, found)
                kept = Marks(*(np.where(late, a, b) for a, b in zip(found, kept, strict=True)))
        other.remember(kept, backwards=True)  # of many lanes that read a cell at once, this keeps the first …
        last.remember(made)  # … and this the last

    def _order(self) -> Any:
        program = self._here().program
        return order_at(program, generated_line(program))

    def _now(self, gid: Array) -> Marks:
        """What the threads ``gid`` do now."""
        m, line = self._here(), generated_line(self._here().program)
        clocks, order = self._clocks(m), order_at(m.program, line)
        block = m.numbers[gid // m.padded_threads]
        thread = gid % (clocks.size * 32)
        return access_marks.marks(self._launch, order, block, line, thread, clocks.now(gid >> 5))

    def _check(
        self, buffer: Buffer, gid: Array, address: Array, past: Marks, made: Marks, changes: Array | None, did: str
    ) -> None:
        """Traps where the accesses ``past`` [lanes, cells] are not over yet. ``changes``: None for a read."""
        if past.newest() < self._overlap.first:
            return
        m, launch = self._here(), past.launch
        if self._overlap.before:
            waited = self._clocks(m).waited(gid)[:, None]
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
            race = race & self._unordered(m, gid, past) & ~self._both_strong(m, gid, past, made)
        if race.any():
            race = race & ~self._guessed(past)
        if race.any():
            raise self._race(buffer, gid, address, race, past, changes is None, did)

    def _unordered(self, m: WatchedBlocks, gid: Array, past: Marks) -> Array:
        """Which of the accesses of this launch does a thread know nothing of?"""
        clocks, warp, mine = self._clocks(m), (gid >> 5)[:, None], (gid % (self._clocks(m).size * 32))[:, None]
        cluster = past.block // m.cluster_size
        home = cluster == (m.numbers[gid // m.padded_threads] // m.cluster_size)[:, None]
        column, epoch = past.column, past.epoch
        late = clocks.unknown(gid[:, None], column, past.lane, epoch)
        late |= (column == mine >> 5) & clocks.lanes.unmet(warp, mine & 31, past.lane, epoch)
        if home.all():
            return late
        if clocks.follows_grid:
            warps = column < clocks.size  # what other clusters know of each other's copies is not followed
            at, followed = clocks.column_in_grid(cluster, np.where(warps, column, 0))
            far = followed & warps & (clocks.knows(gid[:, None], at) < epoch)
        else:
            far = np.ones(late.shape, np.bool_)
        return np.where(home, late, far)

    def _check_proxy(self, buffer: Buffer, gid: Array, address: Array, past: Marks, does: str) -> None:
        """Traps where a bulk copy comes upon what a thread wrote in this launch, and no fence stands between. Of other
        clusters it is only asked whether the kernel has such a fence."""
        if past.newest() < self._launch:
            return
        m, clocks = self._here(), self._clocks(self._here())
        home = past.block // m.cluster_size == (m.numbers[gid // m.padded_threads] // m.cluster_size)[:, None]
        unseen = clocks.unknown(gid[:, None], past.column, past.lane, past.epoch, clocks.fenced_global)
        bad = (past.launch == self._launch) & np.where(home, unseen, not m.program.fences_global_proxy)
        if bad.any():
            lines = past.lines()
            own = [n for n in np.unique(lines[bad]).tolist() if (i := m.program.source_map.get(n)) and i.opcode == "cp"]
            bad &= ~np.isin(lines, own)  # copies that have been waited for
        if bad.any():
            gid_at, at, mark = self._first(gid, address, bad, past)
            message = (
                f"{does} byte {at - buffer.base} of {buffer.name} by a bulk copy, which does not see what block "
                f"{m.coordinates(mark.block)} wrote there, since no fence.proxy.async stands between"
            )
            raise self._trap(Verdict.NON_DETERMINISTIC, message, gid_at, at, mark)

    def _both_strong(self, m: WatchedBlocks, gid: Array, past: Marks, made: Marks) -> Array:
        """Strong operations do not race where the scopes of both take in both threads."""
        block = m.numbers[gid // m.padded_threads][:, None]
        near = np.where(past.block // m.cluster_size == block // m.cluster_size, CLUSTER, GRID)
        needed = np.where(past.block == block, CTA, near)
        return np.asarray(np.minimum(past.scope, made.scope[:, None]) > needed)

    def _guessed(self, past: Marks) -> Array:
        """Is one a plain read for a compare-and-swap, and the other one that swaps?"""
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
        m = self._here()
        gid_at, at, mark = self._first(gid, address, bad, past)
        who = f"block {m.coordinates(mark.block)}"
        if mark.block == m.numbers[gid_at // m.padded_threads]:
            who = f"thread {m.place(mark.thread % m.padded_threads)[1]} of its own block"
        does = "reads what" if reads else ("writes something else where" if did == WROTE else "overwrites what")
        where, between = f"byte {at - buffer.base} of {buffer.name}", "with no order between"
        if did == READ and (mark.epoch >= IN_FLIGHT or mark.thread >> 5 >= self._clocks(m).size):
            who, did, between = "a copy", "reads", "which nobody has waited for"
        elif mark.epoch >= IN_FLIGHT:
            did, between = "has a bulk copy write", "which nobody has waited for (.read waits for its source alone)"
        message = f"a race: {does} {who} {did}, {where}, {between}"
        return self._trap(Verdict.NON_DETERMINISTIC, message, gid_at, at, mark)

    def _first(self, gid: Array, address: Array, bad: Array, past: Marks) -> tuple[int, int, Mark]:
        """(thread, address, earlier access) of the first that is ``bad`` [lanes, cells]."""
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
        """(the last readers, others); nothing where nobody has read and no tables are to be made."""
        if buffer.readers is None:
            if not make:
                return ()
            size = len(buffer.data)
            buffer.readers = access_marks.table(size, self._unit), access_marks.table(size, self._unit)
        row = (address - np.uint64(buffer.base)).view(np.int64) // width
        last, other = (access_marks.rows(table, row, width // self._unit) for table in buffer.readers)
        return last, other

    def _here(self) -> WatchedBlocks:
        assert self._chunk is not None
        return self._chunk

    def _clocks(self, m: WatchedBlocks) -> VectorClocks:
        assert m.clocks is not None
        return m.clocks

"""Executes a build's launch plan on host buffers."""

from __future__ import annotations

import gc
import math
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType

import numpy as np

from cutegen_lab.core.artifact import PROGRAMMATIC, Build, Launch
from cutegen_lab.core.counters import SECTOR_BYTES
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.protocols import Cancel, Execution
from cutegen_lab.core.timeline import Timeline
from cutegen_lab.core.trial import SharedAccess
from cutegen_lab.core.verdict import Fault, Verdict, quoted
from cutegen_lab.emulator.analysis import examine
from cutegen_lab.emulator.buffer import Buffer
from cutegen_lab.emulator.counters.launch_counters import Counters, Uncounted
from cutegen_lab.emulator.counters.totals import NOT_SUMS, LaunchCounts, Sums, most_conflicting
from cutegen_lab.emulator.execution_order import Order
from cutegen_lab.emulator.faults import Trap, Unsupported
from cutegen_lab.emulator.isa.approximate import as_near_as_hardware
from cutegen_lab.emulator.machine import launch_limits
from cutegen_lab.emulator.machine.blas import one_thread
from cutegen_lab.emulator.machine.cta_batch import CtaBatch
from cutegen_lab.emulator.machine.launch_split import (
    LARGE_BYTES,
    MOST_BYTES,
    LaunchSplit,
    cluster_bytes,
    split,
    watched_bytes,
)
from cutegen_lab.emulator.machine.recorder import Recorder
from cutegen_lab.emulator.machine.schedule import Scheduler
from cutegen_lab.emulator.memory.global_memory import GlobalMemory
from cutegen_lab.emulator.options import (
    BATCH_COST,
    FEW_BATCHES,
    FEW_BYTES,
    RACE_TABLE_BYTES,
    RACES_BYTES,
    Options,
)
from cutegen_lab.emulator.program import MODULE_BASE, PARAM_BASE, Program, load
from cutegen_lab.emulator.ptx.types import Array
from cutegen_lab.emulator.races.branch_outcomes import BranchOutcomes
from cutegen_lab.emulator.races.global_memory import GlobalRaces
from cutegen_lab.emulator.races.store_owners import StoreOwners
from cutegen_lab.emulator.tma import tensor_map


@dataclass
class Result:
    """``execution`` as a device reports it, and by launch: counters, their details (``accounts``) and timelines."""

    execution: Execution
    per_launch: list[dict[str, float]] = field(default_factory=list)
    accounts: list[LaunchCounts] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)

    def lines(self, build: Build) -> list[dict[int, Sums]]:
        """Counters of each launch by line of the candidate; line 0 for counts that belong to none."""
        return [account.by_line(build) for account in self.accounts]

    def accesses(self, build: Build) -> tuple[SharedAccess, ...]:
        """Accesses to shared memory with bank conflicts, the most conflicts first: one for each line and kind of access
        (load, store, ldmatrix, stmatrix)."""
        return most_conflicting(access for account in self.accounts for access in account.accesses(build))


def run_plan(
    build: Build,
    tensors: Sequence[TensorSpec],
    buffers: Sequence[memoryview],
    cancel: Cancel,
    options: Options | None = None,
    inputs: int | None = None,
) -> Result:
    """Runs every launch of ``build.plan`` in order.

    ``tensors`` and ``buffers`` are inputs, outputs, workspace. The first ``inputs`` of them hold data (None: the number
    that the build records, else all but the workspace). A store to one of these is a fault if the number is known; with
    ``options.shadow``, so is a read of an unwritten byte of the others. After a read of an uninitialised register or
    uninitialised shared or local memory the plan runs again with tracking of such values (:mod:`origin_rules`). A
    candidate's failure is ``execution.fault``, and so is a plan that exceeds the emulator's limits. Raises Cancelled.
    """
    options = options or Options()
    inputs = build.inputs if inputs is None else inputs
    started = time.perf_counter()
    runner = _Runner(build, tensors, buffers, cancel, options, inputs)
    noise = options.order.noise if options.order else None
    with np.errstate(all="ignore"), one_thread(), as_near_as_hardware(noise):
        result, fault, launched = _launched(runner, build)
        if runner.read_unwritten:
            runner.restore()
            runner = _Runner(build, tensors, buffers, cancel, options, inputs, followed=True)
            result, fault, launched = _launched(runner, build)
    totals: Counter[str] = Counter()
    for counters in result.per_launch:
        totals.update({k: v for k, v in counters.items() if k not in NOT_SUMS})
    totals.update(runner.loaded(tensors) if options.counting else {})
    result.accounts, result.timelines = runner.accounts, runner.timelines
    printed = runner.printed()
    seconds = time.perf_counter() - started
    result.execution = Execution(fault, seconds, dict(totals), tuple(launched), printed)
    return result


def _launched(runner: _Runner, build: Build) -> tuple[Result, Fault | None, list[tuple[str, tuple[int, int, int]]]]:
    """Runs every launch up to the first that fails."""
    launched: list[tuple[str, tuple[int, int, int]]] = []
    result = Result(Execution(None, 0.0))
    fault = None
    for launch in build.plan.launches:
        try:
            fault, counters = runner.launch(launch)
        except MemoryError as error:
            said = str(error) or "an allocation failed"
            fault = Fault(Verdict.OUT_OF_MEMORY, f"the emulator is out of memory: {said}", launch.kernel)
        launched.append((launch.kernel, launch.grid))
        if fault is not None:
            break
        result.per_launch.append(counters)
    return result, fault, launched


class _Runner:
    def __init__(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        options: Options, inputs: int | None, followed: bool = False,
    ) -> None:  # fmt: skip
        self._build, self._cancel, self._options, self._followed = build, cancel, options, followed
        self.read_unwritten = False  # set if the plan must run again, with tracking of uninitialised values
        self.accounts: list[LaunchCounts] = []
        self.timelines: list[Timeline] = []
        self._bytes = sum(b.nbytes for b in buffers)
        self._left = options.most_in_all(self._bytes)
        # Bytes of the tensors without the workspace.
        own = sum(b.nbytes for b in buffers[: len(buffers) - len(build.plan.workspace)])
        small = options.sample_blocks is None and own <= RACES_BYTES
        self._races = small if options.races is None else options.races
        # Number of clusters of each launch that are watched.
        self._watched = 0 if self._races or options.races is not None else options.watched
        most = None if self._races else RACE_TABLE_BYTES
        self._watch = GlobalRaces(_access_unit(build), most) if self._races or self._watched else None
        apart = not self._races and options.races is None and options.sample_blocks is None
        self._owners = StoreOwners(_access_unit(build)) if apart else None
        self._order = options.order or Order()
        far, places = self._order.placed(len(buffers))
        self._memory = GlobalMemory(self._watch, far)
        self._clock = self._order.clock
        self._names = list(map(str, tensors))
        fresh = range(len(buffers) - len(build.plan.workspace) if inputs is None else inputs)
        self._shadow = options.shadow
        placed: dict[int, Buffer] = {}
        for i, past in places:
            data = np.frombuffer(buffers[i].cast("B"), np.uint8) if buffers[i].nbytes else np.zeros(0, np.uint8)
            known, shadow = inputs is not None and i in fresh, self._shadow and i not in fresh
            placed[i] = self._memory.add(str(tensors[i]), data, shadow=shadow, past=past, constant=known)
            if self._owners is not None and not known:
                placed[i].owners = self._owners.table(len(data))
            placed[i].initial = data.copy() if self._shadow and not known else None
        self._buffers = [placed[i] for i in range(len(buffers))]
        self._fresh = fresh
        self._loaded: dict[int, float] = defaultdict(float)  # bytes loaded, by tensor

    def printed(self) -> str:
        return self._memory.printed.text()

    def restore(self) -> None:
        """Restores the tensors' contents from before the first launch."""
        for buffer in self._buffers:
            if buffer.initial is not None:
                buffer.data[:] = buffer.initial

    def loaded(self, tensors: Sequence[TensorSpec]) -> dict[str, float]:
        """``loaded_bytes:NAME`` for each input (for all but the workspace if ``inputs`` is None), at most its size."""
        sizes = {i: float(len(self._buffers[i].data)) for i in self._fresh}
        return {f"loaded_bytes:{tensors[i].name}": min(self._loaded[i], size) for i, size in sizes.items()}

    def launch(self, launch: Launch) -> tuple[Fault | None, dict[str, float]]:
        try:
            program = load(self._build.ptx, launch.kernel, self._followed)
        except Unsupported as stop:
            return self._unsupported(stop, launch), {}
        problem = launch_limits.check(launch, program, self._build.arch, len(self._buffers))
        if problem:
            return Fault(problem[0], problem[1], launch.kernel), {}
        looks = self._options.hidden_addresses and not self._followed
        if looks and (fault := examine.misused(program, launch, self._build, self._names)):
            return fault, {}
        division = split(program, launch, self._options, self._races, launch_limits.resident(launch, self._build))
        if problem := self._too_much(launch, program, division):
            return Fault(problem[0], problem[1], launch.kernel), {}
        extra = [self._memory.add("the parameters", self._parameters(launch, program), base=PARAM_BASE, constant=True)]
        if program.module_data:
            data = np.frombuffer(bytearray(program.module_data), np.uint8)
            extra.append(self._memory.add("module data", data, base=MODULE_BASE))
        try:
            return self._run(launch, program, division)
        finally:
            for buffer in extra:
                self._memory.remove(buffer)

    def _too_much(self, launch: Launch, program: Program, division: LaunchSplit) -> tuple[Verdict, str] | None:
        if (size := cluster_bytes(program, launch)) > MOST_BYTES:
            what = "block" if division.cluster == 1 else f"cluster of {division.cluster} blocks"
            return Verdict.OUT_OF_MEMORY, f"a {what} needs {size >> 20} MiB; the emulator has {MOST_BYTES >> 20}"
        if self._options.sample_blocks is None and division.batches * BATCH_COST > self._left:
            most = self._left // BATCH_COST * division.step * division.cluster
            blocks = division.clusters * division.cluster
            return Verdict.HANG, f"a grid of {blocks} blocks: the emulator runs at most {most} of this size"
        return None

    def _parameters(self, launch: Launch, program: Program) -> Array:
        """The parameter block with every relocation applied."""
        size = program.param_offsets[-1] + program.params[-1][1] if program.params else 0
        block = np.zeros(max(-(-size // 16) * 16, 16), np.uint8)
        for offset, value in zip(program.param_offsets, launch.params, strict=True):
            block[offset : offset + len(value)] = np.frombuffer(value, np.uint8)
        for moved in launch.relocations:
            address = self._buffers[moved.tensor].base + moved.tensor_offset
            at = program.param_offsets[moved.param] + moved.offset
            block[at : at + 8] = np.frombuffer((address % 2**64).to_bytes(8, "little"), np.uint8)
        return block

    def _run(self, launch: Launch, program: Program, division: LaunchSplit) -> tuple[Fault | None, dict[str, float]]:
        counters = Counters(program.sites) if self._options.counting else Uncounted(program.sites)
        if self._watch is not None:
            self._watch.begin(program, any(launch.attributes.get(PROGRAMMATIC, b"")))
        owners = None if program.blocks_may_wait else self._owners
        if self._owners is not None:
            self._owners.begin(division.clusters)
        alone = self._watched and not program.blocks_may_meet and division.clusters > 1
        branches = BranchOutcomes() if alone else None
        before = _Contents(self._memory) if alone else None
        large = cluster_bytes(program, launch) >= LARGE_BYTES
        record = self._options.record
        for numbers, watched in self._batches(program, launch, division):
            if fault := self._run_batch(launch, program, numbers, watched, counters, owners, branches, record):
                return fault, {}
            record = False  # only the launch's first batch is recorded
            if large:
                gc.collect()  # batches are reference cycles: only the collector frees their memory
        if branches is not None and before is not None and len(clusters := branches.unwatched_clusters()):
            after = before.restore()
            for first in range(0, len(clusters), division.step):
                numbers = division.blocks(clusters[first : first + division.step])
                unused = Uncounted(program.sites)
                if fault := self._run_batch(launch, program, numbers, True, unused, None, None, False):
                    return fault, {}
            after.restore()
        self._clock += counters.elapsed()
        if not self._options.counting:
            return None, {}
        scale = division.clusters * division.cluster / max(counters.blocks, 1)
        account = LaunchCounts(program, counters, scale)
        self.accounts.append(account)
        return None, {**account.totals(), **self._dram(counters, scale)}

    def _run_batch(
        self, launch: Launch, program: Program, numbers: Array, watched: bool, counters: Counters,
        owners: StoreOwners | None, branches: BranchOutcomes | None, record: bool,
    ) -> Fault | None:  # fmt: skip
        """Runs the blocks ``numbers``. ``watched``: with race detection."""
        races = self._races or watched
        warps = self._order.warps if races else 0
        ctas = CtaBatch(
            program, launch, self._memory, numbers, counters, self._shadow, self._clock, races,
            launch_limits.registers(launch, self._build), warps,
        )  # fmt: skip
        self._memory.races = self._watch if races else None
        self._memory.owners = owners
        if owners is not None:
            owners.enter(ctas)
        if self._watch is not None and races:
            self._watch.enter(ctas)
        ctas.branches = branches
        threads = math.prod(launch.grid) * math.prod(launch.block)
        budget = min(self._options.most(self._bytes, threads), self._left)
        kind = Recorder if record else Scheduler
        scheduler = kind(ctas, self._cancel, budget, warps, launch_limits.resident(launch, self._build))
        try:
            if isinstance(scheduler, Recorder):
                self.timelines.append(scheduler.record(self._build.source_line))
            else:
                scheduler.run()
        except Trap as trap:
            self.read_unwritten = trap.follows
            return self._trapped(trap, ctas)
        self._left -= budget - scheduler.budget + BATCH_COST
        counters.blocks += len(numbers)
        return None

    def _batches(self, program: Program, launch: Launch, division: LaunchSplit) -> Iterator[tuple[Array, bool]]:
        """(block numbers, race detection) of each batch. If blocks may wait for each other, a whole batch is watched
        (:data:`FEW_BATCHES`, :data:`FEW_BYTES`)."""
        apart = self._watched
        if apart and program.blocks_may_meet:
            light = division.batches >= FEW_BATCHES or self._bytes <= FEW_BYTES
            apart = division.step if light and watched_bytes(program, launch, division) <= MOST_BYTES else 0
        return division.watched(division.numbers(self._order, self._options.sample_blocks), apart, self._order.clock)

    def _dram(self, counters: Counters, scale: float) -> dict[str, float]:
        """DRAM bytes: at most each tensor's size, since repeated accesses are assumed to hit L2."""
        found = {"dram_load_bytes": 0.0, "dram_store_bytes": 0.0}
        for (kind, slot), touched in self._by_tensor(counters).items():
            found[f"dram_{kind}_bytes"] += min(touched * SECTOR_BYTES * scale, float(len(self._buffers[slot].data)))
            if kind == "load":
                self._loaded[slot] += touched * SECTOR_BYTES * scale
        return found

    def _by_tensor(self, counters: Counters) -> Counter[tuple[str, int]]:
        bases = sorted((b.base >> 24, i) for i, b in enumerate(self._buffers))
        found: Counter[tuple[str, int]] = Counter()
        for (kind, slot), touched in counters.by_slot.items():
            if at := bisect_right(bases, (slot, len(bases))):
                found[kind, bases[at - 1][1]] += touched
        return found

    def _unsupported(self, stop: Unsupported, launch: Launch) -> Fault:
        where = f" (PTX line {stop.ptx_line})" if stop.ptx_line else ""
        return Fault(
            Verdict.UNSUPPORTED, stop.message + where, launch.kernel, line=self._build.source_line(stop.ptx_line),
            instruction=stop.instruction,
        )  # fmt: skip

    def _trapped(self, trap: Trap, ctas: CtaBatch) -> Fault:
        program = ctas.program
        instruction = None
        if trap.instruction is not None:
            instruction = trap.instruction
        elif trap.block is not None:
            block = program.blocks[trap.block]
            instruction = block.emits[0].ins if block.emits else block.terminator
        elif (line := _generated_line(trap.__traceback__, program.file_name)) is not None:
            instruction = program.source_map.get(line)
        message = trap.message
        if trap.earlier is not None:
            message += f" (line {self._build.source_line(trap.earlier.line)}, `{quoted(trap.earlier.text)}`)"
        places = (f"{who}, at line {self._build.source_line(at.line)} `{quoted(at.text)}`" for who, at in trap.waiting)
        message = ": ".join(filter(None, (message, "; ".join(places))))
        block_xyz, thread = ctas.place(trap.gid) if trap.gid is not None else (None, None)
        return Fault(
            trap.verdict, message, ctas.launch.kernel, block_xyz, thread, trap.address,
            line=self._build.source_line(instruction.line) if instruction else 0,
            instruction=instruction.text if instruction else "",
        )  # fmt: skip


class _Contents:
    """A snapshot of writable tensors and printed lines."""

    def __init__(self, memory: GlobalMemory) -> None:
        self._memory = memory
        self._each = [
            (b, b.data.copy(), None if b.written is None else b.written.copy())
            for b in memory.buffers
            if not b.constant
        ]
        self._said = replace(memory.printed, lines=[*memory.printed.lines])

    def restore(self) -> _Contents:
        """Restores the snapshot. Returns one of the state before."""
        until = _Contents(self._memory)
        for buffer, data, written in self._each:
            buffer.data[:] = data
            if buffer.written is not None:
                buffer.written[:] = written
        self._memory.printed = self._said
        return until


def _access_unit(build: Build) -> int:
    """Bytes of the narrowest access in any launch whose PTX the emulator can read."""
    found = [4]
    for kernel in {launch.kernel for launch in build.plan.launches}:
        with suppress(Unsupported, MemoryError):
            found.append(load(build.ptx, kernel).access_unit)
    params = [param for launch in build.plan.launches for param in launch.params]
    return min(found + tensor_map.element_bytes(params))


def _generated_line(traceback: TracebackType | None, file_name: str) -> int | None:
    found = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file_name:
            found = traceback.tb_lineno
        traceback = traceback.tb_next
    return found

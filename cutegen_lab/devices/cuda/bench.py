"""The worker's half of a stopwatch: tensor sets, subjects ready to run, and three clocks.

A sample of K calls is timed between two events on the legacy default stream, which waits for all other work in its
context; the device is synchronised before the events are read. The device spins while the host enqueues, so that host
launch overhead is not timed. Before each sample persisting L2 lines are reset, and L2 is swept:

- ``cold``: by reading four times its size, so that the timed calls write back only their own lines;
- ``events``: by writing that memory, as single-call timings commonly do;
- ``records``: by reading it; the time is what CUPTI recorded of the kernels, not between events;
- ``warm``: not at all; the graph runs once untimed instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.stopwatch import Mode, ReferenceKind
from cutegen_lab.devices.cuda import cupti_activity
from cutegen_lab.devices.cuda.driver import Driver
from cutegen_lab.devices.cuda.nvml import Card
from cutegen_lab.devices.cuda.rotating_buffers import RotatingBuffers, set_count
from cutegen_lab.devices.cuda.subjects import CopySubject, PlanSubject, ReferenceSubject, Runnable, forget, wipe

SPIN_CYCLES_PER_S = 2e9  # upper bound on the clock rate
SPIN_SECONDS = 2e-4  # minimum spin time; longer if three times the host's enqueue time is longer
ROOM = 0.2  # fraction of free memory for the sets; for each set, references allocate their own outputs
_CARD_SECONDS = 0.05  # seconds between readings of the card


class Graphs:
    """A subject's calls as CUDA graphs, captured when first needed: one with each call on another set, one with all on
    the first."""

    def __init__(self, driver: Driver, runnable: Runnable, calls: int) -> None:
        self._driver, self._runnable, self._calls = driver, runnable, calls
        self._kept: list[object] = []
        self._act: dict[Mode, Callable[[int], object]] = {}
        self._spins: dict[Mode, int] = {}
        for index in range(calls):  # runs without capture first: loads modules, runs autotuners, detects faults
            result = runnable.call(index)
            driver.call("cuCtxSynchronize")
            wipe(result)

    def has(self, mode: Mode) -> bool:
        """Whether :meth:`prepare` was called for a mode."""
        return mode in self._act

    def prepare(self, mode: Mode) -> None:
        """Captures the graph of a mode, and calls it; must come before the first :meth:`enqueue` or :meth:`spin` of
        that mode."""
        self._act[mode] = self._made(mode)
        self._spins[mode] = self._spin_cycles(self._act[mode])

    def enqueue(self, mode: Mode, single: int) -> object:
        """Enqueues the timed work: a graph, or one call on set ``single``. Keep the result until the work is done."""
        return self._act[mode](single)

    def spin(self, mode: Mode) -> None:
        """Keeps the device busy for as long as the host needs for :meth:`enqueue`."""
        cupti_activity.mark(self._spins[mode])

    def wipe(self) -> None:
        """Overwrites what the calls in graphs returned."""
        for result in self._kept:
            wipe(result)

    def _made(self, mode: Mode) -> Callable[[int], object]:
        if mode not in ("cold", "warm"):
            return self._runnable.call
        graph = self._capture(range(self._calls) if mode == "cold" else [0] * self._calls, keep=mode == "cold")
        return lambda single: graph.replay()

    def _spin_cycles(self, act: Callable[[int], object]) -> int:
        seconds = 0.0
        for _ in range(2):  # the first replay uploads the graph
            started = time.perf_counter()
            result = act(0)
            seconds = time.perf_counter() - started
            self._driver.call("cuCtxSynchronize")
            wipe(result)
        return int(max(SPIN_SECONDS, 3 * seconds) * SPIN_CYCLES_PER_S)

    def _capture(self, indices: Sequence[int], keep: bool) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for index in indices:
                result = self._runnable.call(index)
                if keep:  # otherwise the allocator would reuse the memory that the previous call wrote
                    self._kept.append(result)
        return graph


class Bench:
    """Everything that timing one workload needs on the device. Raises torch's OutOfMemoryError and DriverError."""

    def __init__(self, driver: Driver, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> None:
        self._driver = driver
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.l2_bytes = int(properties.L2_cache_size)
        self._sweep = torch.zeros(max(4 * self.l2_bytes, 1 << 28) // 4, dtype=torch.float32, device="cuda")
        set_bytes = sum(spec.storage_bytes for spec in (*inputs, *outputs))
        room = int(torch.cuda.mem_get_info()[0] * ROOM)
        self._masters = [torch.empty(spec.storage_bytes, dtype=torch.uint8, device="cuda") for spec in inputs]
        self.sets = RotatingBuffers(inputs, outputs, self._masters, set_count(set_bytes, self.l2_bytes, room))
        self.card = Card(driver.pci_bus_id(torch.cuda.current_device()))
        self._read, self._readings = 0.0, dict[str, float]()
        self._subjects: dict[str, tuple[Runnable, Graphs]] = {}
        self._result: object = None  # result of the last call that CUPTI recorded

    def load(self, inputs: Sequence[torch.Tensor]) -> None:
        """Stores the inputs' bytes; rotated, they are the values of every set."""
        for master, given in zip(self._masters, inputs, strict=True):
            master.copy_(given)
        self.sets.refresh(0)

    def add_build(self, name: str, build: Build) -> tuple[str, ...]:
        return self._add(name, lambda: PlanSubject(self._driver, build, self.sets))

    def add_reference(self, name: str, problem: Problem, kind: ReferenceKind) -> tuple[str, ...]:
        return self._add(name, lambda: ReferenceSubject(problem, kind, self.sets))

    def add_copy(self, name: str) -> tuple[str, ...]:
        return self._add(name, lambda: CopySubject(self.sets))

    def sample(self, name: str, mode: Mode, count: int, seed: int) -> list[float]:
        """``count`` samples in microseconds per call."""
        runnable, graphs = self._subjects[name]
        if not graphs.has(mode):
            self.sets.refresh(seed)  # samples of the copy overwrite indices: an access with them would fault
            graphs.prepare(mode)
        if mode == "records":
            times = cupti_activity.spans(lambda number: self._recorded(runnable, graphs, seed + number), count)
            wipe(self._result)
            return times
        times = []
        for each in range(seed, seed + count):
            single = each % len(self.sets)
            self._fresh(runnable, each, {"cold": None, "warm": [0]}.get(mode, [single]))
            times.append(self._once(graphs, mode, single))
        graphs.wipe()
        if time.monotonic() - self._read > _CARD_SECONDS:
            self._readings, self._read = self.card.read(), time.monotonic()
        return times

    def readings(self) -> dict[str, float]:
        return self._readings

    def outputs(self, call: int) -> list[torch.Tensor]:
        return self.sets.outputs(call)

    def close(self) -> None:
        for runnable, _ in self._subjects.values():
            runnable.close()
        self._subjects.clear()
        forget()

    def _add(self, name: str, made: Callable[[], Runnable]) -> tuple[str, ...]:
        self.sets.refresh(0)
        runnable = made()
        self._subjects[name] = runnable, Graphs(self._driver, runnable, len(self.sets))
        return runnable.notes

    def _fresh(self, runnable: Runnable, seed: int, sets: Sequence[int] | None) -> None:
        """Rewrites ``sets`` (None: all) before a sample."""
        self.sets.refresh(seed, sets)
        runnable.refresh(seed)
        self._driver.call("cuCtxResetPersistingL2Cache")

    def _recorded(self, runnable: Runnable, graphs: Graphs, seed: int) -> None:
        """Runs one call between two marks; the first mark spins while the host enqueues the call."""
        single = seed % len(self.sets)
        wipe(self._result)
        self._fresh(runnable, seed, [single])
        self._sweep.sum()
        graphs.spin("records")
        self._result = graphs.enqueue("records", single)
        cupti_activity.mark()

    def _once(self, graphs: Graphs, mode: Mode, single: int) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if mode == "events":
            self._sweep.fill_(1.0)
        elif mode == "cold":
            self._sweep.sum()
        else:
            graphs.enqueue("warm", single)
        graphs.spin(mode)
        start.record()
        result = graphs.enqueue(mode, single)
        end.record()
        self._driver.call("cuCtxSynchronize")
        wipe(result)
        return float(start.elapsed_time(end)) * 1e3 / (1 if mode == "events" else len(self.sets))

"""``CudaDevice``: sends builds and buffers to a worker process, and kills it if it hangs, dies or is cancelled."""

from __future__ import annotations

import base64
import math
import threading
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Literal

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.errors import Cancelled, SetupError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.protocols import Cancel, Execution, Inspection, SanitizerTool
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.stopwatch import Stopwatch
from cutegen_lab.core.timeline import Timeline
from cutegen_lab.core.trial import Profile, Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.devices.cuda import ncu, sanitizer
from cutegen_lab.devices.cuda.compile_ahead import CompileAhead
from cutegen_lab.devices.cuda.driver import Driver, DriverError
from cutegen_lab.devices.cuda.process import SharedMemory, WorkerProcess, fault_of
from cutegen_lab.devices.cuda.stopwatch import CudaStopwatch, conditions
from cutegen_lab.devices.cuda.worker_protocol import guard_changed, lean

if TYPE_CHECKING:
    from cutegen_lab.devices.cuda.ipc_memory import LentMemory

WATCHDOG_SECONDS = 10.0
SAMPLES = 30


def gpu_count() -> int:
    """Number of usable CUDA devices; 0 without a driver or GPU."""
    try:
        return Driver().device_count()
    except (OSError, DriverError):
        return 0


class CudaDevice:
    """A :class:`~cutegen_lab.core.protocols.Device` on visible GPU ``index``.

    ``watchdog_seconds`` bounds one execution, transfers not included. Raises SetupError if there is no such GPU or the
    worker cannot start.
    """

    kind: Literal["cuda", "emulator"] = "cuda"

    def __init__(self, index: int = 0, watchdog_seconds: float = WATCHDOG_SECONDS) -> None:
        count = gpu_count()
        if count == 0:
            raise SetupError("no CUDA device is visible", Hint(Advice.USE_EMULATOR))
        if index >= count:
            seen = "cuda:0 is the only one" if count == 1 else f"cuda:0 to cuda:{count - 1} are"
            raise SetupError(f"cuda:{index} is not visible; {seen}", "Choose another, or check CUDA_VISIBLE_DEVICES.")
        self._index, self._watchdog = index, watchdog_seconds
        self.torch_device = f"cuda:{index}"
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._memory: LentMemory | None = None
        self._lends = True
        self._ahead = CompileAhead(index)
        try:
            hello = self._started().hello
        except BaseException:
            self._ahead.end()
            raise
        self.name, self.conditions = f"cuda:{index} {hello['name']}", conditions(hello)

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        counting: bool = True, flops: int = 0,
    ) -> Execution:  # fmt: skip
        """Runs the plan once on copies of ``buffers`` and writes every tensor back. Raises Cancelled."""
        launched = tuple((launch.kernel, launch.grid) for launch in build.plan.launches)
        with self._lock, SharedMemory([buffer.nbytes for buffer in buffers]) as memory:
            worker = self._started()
            memory.write(buffers)
            request = {"verb": "execute", "build": lean(build).to_dict(), **memory.request}
            answer = worker.ask(request, self._watchdog + memory.seconds, cancel)
            if not answer["ok"]:
                worker.kill()  # the next trial gets a fresh worker
                return Execution(fault_of(answer), 0.0, launched=launched)
            memory.read(buffers)
            return Execution(None, answer["seconds"], launched=launched)

    def lend(self, sizes: Sequence[int]) -> Sequence[object] | None:
        with self._lock:
            try:
                memory = self._enough(sizes) if self._lends else None
            except (DriverError, RuntimeError):  # too little memory, PyTorch without CUDA, or no memory sharing
                return None
            return None if memory is None else memory.slots(sizes)

    def execute_lent(self, build: Build, cancel: Cancel) -> Execution:
        """Runs the plan once in the memory lent last. Raises Cancelled."""
        launched = tuple((launch.kernel, launch.grid) for launch in build.plan.launches)
        with self._lock:
            worker, memory = self._started(), self._memory
            assert memory is not None, "lent before"
            request = {"verb": "execute_lent", "build": lean(build).to_dict(), "handle": memory.handle}
            memory.settle()
            try:
                answer = worker.ask({**request, "offsets": memory.offsets}, self._watchdog, cancel)
            except Cancelled:
                self._take_back()
                raise
            if not answer["ok"]:
                worker.kill()
                self._take_back()  # the next execution gets fresh memory
                return Execution(fault_of(answer), 0.0, launched=launched)
            if (index := memory.broken_guard()) is not None:
                return Execution(Fault(Verdict.OUT_OF_BOUNDS, guard_changed(index)), 0.0, launched=launched)
            return Execution(None, answer["seconds"], launched=launched)

    def prepare(self, problem: Problem) -> None:
        self._ahead.compile(problem)

    def stopwatch(
        self, tensors: Sequence[TensorSpec], inputs: Sequence[memoryview], cancel: Cancel
    ) -> Stopwatch | Fault:
        """Opens a stopwatch, which holds the device until it is closed. Raises Cancelled."""
        self._lock.acquire()
        opened = None
        try:
            self._take_back()
            self._ahead.end()
            opened = CudaStopwatch(self._started(), tensors, cancel, self._watchdog, self._lock.release)
            fault = opened.open(inputs)
        except BaseException:
            opened.close() if opened else self._lock.release()
            raise
        if fault:
            opened.close()
        return fault or opened

    def time(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], gpu: GpuSpec, cancel: Cancel
    ) -> tuple[Timing | Fault, Profile | None]:
        """Times one build alone with a cold L2. The judge uses :meth:`stopwatch` instead, to interleave it with
        baselines."""
        count = build.inputs if build.inputs is not None else len(tensors) - len(build.plan.workspace) - 1
        opened = self.stopwatch(tensors[: len(tensors) - len(build.plan.workspace)], buffers[:count], cancel)
        if isinstance(opened, Fault):
            return opened, None
        with closing(opened):
            added = opened.add_build("kernel", build)
            taken = added if isinstance(added, Fault) else opened.sample("kernel", "cold", SAMPLES, 1)
        if isinstance(taken, Fault):
            return taken, None
        ordered = sorted(taken.times_us)
        iqr = ordered[3 * SAMPLES // 4] - ordered[SAMPLES // 4]
        method = f"{taken.clock}, {taken.flush}, median of {SAMPLES}"
        return Timing("measured", ordered[SAMPLES // 2], method, self.name, SAMPLES, iqr), None

    def inspect(self, tool: SanitizerTool, build: Build, buffers: Sequence[memoryview], cancel: Cancel) -> Inspection:
        """One execution under NVIDIA's compute-sanitizer, in its own worker. Raises Cancelled."""
        with self._lock:
            return sanitizer.inspect(tool, self._index, build, buffers, cancel)

    def profile(self, build: Build, buffers: Sequence[memoryview], cancel: Cancel) -> Profile | str:
        """Hardware counters of one execution under ncu, in its own worker. Raises Cancelled."""
        with self._lock:
            return ncu.profile(self._index, build, buffers, cancel)

    def timelines(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel
    ) -> tuple[Timeline, ...] | str:
        """Timelines of one block of each launch, from clock stamps, or the reason why there are none. Raises
        Cancelled."""
        from cutegen_lab.devices.cuda import stamps  # here, since it imports the emulator's PTX reader and NumPy
        from cutegen_lab.emulator.faults import Unsupported

        try:
            marked = stamps.stamped(build)
        except Unsupported as reason:
            return f"no stamps can be written into this PTX: {reason}"
        with self._lock, SharedMemory([buffer.nbytes for buffer in buffers]) as memory:
            worker = self._started()
            memory.write(buffers)
            warps = [-(-math.prod(launch.block) // 32) for launch in build.plan.launches]
            asked = {"ptx": marked.texts, "symbol": marked.symbol, "nbytes": max(warps) * stamps.WARP_BYTES}
            request = {"verb": "stamps", "build": lean(build).to_dict(), **asked, **memory.request}
            answer = worker.ask(request, self._watchdog + memory.seconds, cancel)
            if not answer["ok"]:
                worker.kill()
                return f"{self.name}: {answer['message']}"
        plain, slowed = answer["milliseconds"]
        longer = f"{slowed / plain:.2f} times as long"
        what = f"measured on {self.name} by stamps of its clock, with which a call takes {longer}"
        found, clock = [], answer["sm_clock_mhz"] or 1.0
        for launch, count, text in zip(build.plan.launches, warps, answer["stamps"], strict=True):
            where = marked.blocks[launch.kernel]
            read = stamps.read(base64.b64decode(text), marked.places, build.source_line, count)
            found.append(
                Timeline(launch.kernel, where, count, read.cycles, read.spans, read.cut, "cycles", clock, what)
            )
        return tuple(found)

    def close(self) -> None:
        self._ahead.end()
        with self._lock:
            if self._worker:
                self._worker.kill()
                self._worker = None
            self._take_back()

    def _enough(self, sizes: Sequence[int]) -> LentMemory | None:
        """Shared GPU memory with slots of these sizes; None if the worker cannot map it. Raises DriverError,
        RuntimeError."""
        # Imported here, since it imports torch: the worker is started before that.
        from cutegen_lab.devices.cuda.ipc_memory import LentMemory, needed

        nbytes = needed(sizes)
        if self._memory is None or self._memory.nbytes < nbytes:
            self._take_back()
            memory = LentMemory(Driver(), self.torch_device, nbytes)
            seen = self._started().ask({"verb": "map", "handle": memory.handle}, self._watchdog, threading.Event())
            if not seen["ok"]:
                memory.free()
                self._lends = False
                return None
            self._memory = memory
        return self._memory

    def _take_back(self) -> None:
        """Frees lent memory, after the worker has unmapped it if it is alive."""
        memory, self._memory = self._memory, None
        if memory is None:
            return
        if self._worker and self._worker.alive:
            self._worker.ask({"verb": "unmap", "handle": memory.handle}, self._watchdog, threading.Event())
        memory.free()

    def _started(self) -> WorkerProcess:
        if self._worker is None or not self._worker.alive:
            self._worker = WorkerProcess(self._index, ahead=self._worker is None)
        return self._worker

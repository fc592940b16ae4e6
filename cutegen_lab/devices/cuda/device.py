"""``CudaDevice``: hands builds and buffers to a worker process and kills it when it hangs, dies or is cancelled."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Literal

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.errors import SetupError
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.protocols import Cancel, Execution, Inspection, SanitizerTool
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.stopwatch import Stopwatch
from cutegen_lab.core.trial import Profile, Timing
from cutegen_lab.core.verdict import Fault
from cutegen_lab.devices.cuda import ncu, sanitizer
from cutegen_lab.devices.cuda.driver import Driver, DriverError
from cutegen_lab.devices.cuda.process import SharedMemory, WorkerProcess, fault_of
from cutegen_lab.devices.cuda.stopwatch import CudaStopwatch, conditions

WATCHDOG_SECONDS = 10.0
SAMPLES = 30


def gpu_count() -> int:
    """Usable CUDA devices; 0 where there is no driver or no GPU."""
    try:
        return Driver().device_count()
    except (OSError, DriverError):
        return 0


class CudaDevice:
    """A :class:`~cutegen_lab.core.protocols.Device` on GPU ``index`` of those that are visible.

    ``watchdog_seconds`` bounds one execution beyond the time its transfers need.
    Raises SetupError where there is no such GPU or the worker cannot start.
    """

    kind: Literal["cuda", "emulator"] = "cuda"

    def __init__(self, index: int = 0, watchdog_seconds: float = WATCHDOG_SECONDS) -> None:
        count = gpu_count()
        if count == 0:
            action = "Use --device emulator, or check nvidia-smi and CUDA_VISIBLE_DEVICES."
            raise SetupError("no CUDA device is visible", action)
        if index >= count:
            seen = "cuda:0 is the only one" if count == 1 else f"cuda:0 to cuda:{count - 1} are"
            raise SetupError(f"cuda:{index} is not visible; {seen}", "Choose another, or check CUDA_VISIBLE_DEVICES.")
        self._index, self._watchdog = index, watchdog_seconds
        self.torch_device = f"cuda:{index}"
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        hello = self._started().hello
        self.name, self.conditions = f"cuda:{index} {hello['name']}", conditions(hello)

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        counting: bool = True, flops: int = 0,
    ) -> Execution:  # fmt: skip
        """Runs the plan once on copies of ``buffers`` and writes every tensor back. Raises Cancelled."""
        launched = tuple((launch.kernel, launch.grid) for launch in build.plan.launches)
        with self._lock, SharedMemory(buffers) as memory:
            worker = self._started()
            memory.upload()
            request = {"verb": "execute", "build": build.to_dict(), **memory.request}
            answer = worker.ask(request, self._watchdog + memory.seconds, cancel)
            if not answer["ok"]:
                worker.kill()  # whatever the kernel did, the next trial gets a fresh worker
                return Execution(fault_of(answer), 0.0, launched=launched)
            memory.download()
            return Execution(None, answer["seconds"], launched=launched)

    def stopwatch(
        self, tensors: Sequence[TensorSpec], inputs: Sequence[memoryview], cancel: Cancel
    ) -> Stopwatch | Fault:
        """Holds the device until it is closed. Raises Cancelled."""
        self._lock.acquire()
        opened = None
        try:
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
        """One build alone with a cold L2. The judge's own timing, in turns with baselines, uses :meth:`stopwatch`."""
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
        """One execution under NVIDIA's compute-sanitizer, in a worker of its own. Raises Cancelled."""
        with self._lock:
            return sanitizer.inspect(tool, self._index, build, buffers, cancel)

    def profile(self, build: Build, buffers: Sequence[memoryview], cancel: Cancel) -> Profile | str:
        """Hardware counters of one execution under ncu, in a worker of its own. Raises Cancelled."""
        with self._lock:
            return ncu.profile(self._index, build, buffers, cancel)

    def close(self) -> None:
        with self._lock:
            if self._worker:
                self._worker.kill()
                self._worker = None

    def _started(self) -> WorkerProcess:
        if self._worker is None or not self._worker.alive:
            self._worker = WorkerProcess(self._index)
        return self._worker

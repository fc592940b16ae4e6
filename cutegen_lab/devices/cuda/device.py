"""``CudaDevice``: hands builds and buffers to a worker process and kills it when it hangs, dies or is cancelled."""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Any, Literal

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.errors import Cancelled, SetupError
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.protocols import Cancel, Execution
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.trial import Profile, Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.devices.cuda.driver import Driver, DriverError
from cutegen_lab.devices.cuda.terms import METHOD, aligned

WATCHDOG_SECONDS = 10.0
START_SECONDS = 120.0
_POLL_SECONDS = 0.05


def gpu_count() -> int:
    """Usable CUDA devices; 0 where there is no driver or no GPU."""
    try:
        return Driver().device_count()
    except (OSError, DriverError):
        return 0


class CudaDevice:
    """A :class:`~cutegen_lab.core.protocols.Device` on the first visible GPU.

    ``watchdog_seconds`` bounds one execution beyond the time its transfers need.
    Raises SetupError where there is no GPU or the worker cannot start.
    """

    kind: Literal["cuda", "emulator"] = "cuda"

    def __init__(self, watchdog_seconds: float = WATCHDOG_SECONDS) -> None:
        if gpu_count() == 0:
            raise SetupError("no CUDA device is visible", "Use --device emulator, or check nvidia-smi.")
        self._watchdog = watchdog_seconds
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self.name = f"cuda:0 {self._started().hello['name']}"

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel
    ) -> Execution:
        """Runs the plan once on copies of ``buffers`` and writes every tensor back. Raises Cancelled."""
        answer = self._ask("execute", build, tensors, buffers, cancel)
        launched = tuple((launch.kernel, launch.grid) for launch in build.plan.launches)
        if not answer["ok"]:
            return Execution(_fault(answer), 0.0, launched=launched)
        return Execution(None, answer["seconds"], launched=launched)

    def time(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], gpu: GpuSpec, cancel: Cancel
    ) -> tuple[Timing | Fault, Profile | None]:
        """Measures one call with a cold L2, beside a copy of the same compulsory bytes in the same run."""
        answer = self._ask("time", build, tensors, buffers, cancel)
        if not answer["ok"]:
            return _fault(answer), None
        samples = answer["samples_us"]
        low, median, high = statistics.quantiles(samples, n=4)
        timing = Timing(
            kind="measured", time_us=median, method=METHOD, device=self.name, samples=len(samples), iqr_us=high - low,
            baselines={"copy of the same bytes": answer["copy_us"]},
        )  # fmt: skip
        return timing, None

    def close(self) -> None:
        with self._lock:
            if self._worker:
                self._worker.kill()
                self._worker = None

    def _started(self) -> _Worker:
        if self._worker is None or not self._worker.alive:
            self._worker = _Worker()
        return self._worker

    def _ask(
        self, verb: str, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel
    ) -> dict[str, Any]:
        with self._lock:
            worker = self._started()
            file = os.memfd_create("cutegen-buffers")
            try:
                sizes = _upload(file, buffers)
                request = {
                    "verb": verb,
                    "build": build.to_dict(),
                    "memory": f"/proc/{os.getpid()}/fd/{file}",
                    "sizes": sizes,
                    "compulsory_bytes": sum(t.nbytes for t in tensors[: len(tensors) - len(build.plan.workspace)]),
                }
                allowed = self._watchdog + sum(sizes) / 200e6  # transfers at a pessimistic 200 MB/s
                answer = worker.ask(request, allowed, cancel)
                if verb == "execute" and answer["ok"]:
                    _download(file, buffers)
                if not answer["ok"]:  # the context may be poisoned: the next trial gets a fresh worker
                    worker.kill()
                return answer
            finally:
                os.close(file)


class _Worker:
    """One worker process in its own session, so that killing it takes its whole process group."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cutegen_lab.devices.cuda.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self._stderr: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._drain, daemon=True).start()
        answer = self._receive(time.monotonic() + START_SECONDS, threading.Event())
        if not answer["ok"]:
            self.kill()
            raise SetupError(f"the CUDA worker did not start: {answer['message']}", "Run `cutegen doctor`.")
        self.hello = answer

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: dict[str, Any], seconds: float, cancel: Cancel) -> dict[str, Any]:
        """Raises Cancelled; a hang or a death comes back as a verdict."""
        stdin = _pipe(self._process.stdin)
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
        except BrokenPipeError:
            return self._death()
        return self._receive(time.monotonic() + seconds, cancel)

    def kill(self) -> None:
        if self.alive:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                _pipe(pipe).close()
            except BrokenPipeError:
                continue

    def _receive(self, deadline: float, cancel: Cancel) -> dict[str, Any]:
        stdout = _pipe(self._process.stdout)
        while not select.select([stdout], [], [], _POLL_SECONDS)[0]:
            if cancel.is_set():
                self.kill()
                raise Cancelled()
            if time.monotonic() > deadline:
                self.kill()
                message = "the kernel did not finish within the watchdog's time; its worker was killed"
                return {"ok": False, "verdict": Verdict.HANG.value, "message": message}
        line = stdout.readline()
        return json.loads(line) if line else self._death()

    def _death(self) -> dict[str, Any]:
        status = self._process.wait()
        tail = ""
        while not self._stderr.empty():
            tail = self._stderr.get()
        message = f"the CUDA worker ended with status {status}: {tail or 'it said nothing'}"
        return {"ok": False, "verdict": Verdict.DEVICE_ERROR.value, "message": message}

    def _drain(self) -> None:
        for line in _pipe(self._process.stderr):
            if line.strip():
                self._stderr.put(line.strip())


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None, "started with pipes"
    return pipe


def _fault(answer: dict[str, Any]) -> Fault:
    return Fault(Verdict(answer["verdict"]), answer["message"])


def _upload(file: int, buffers: Sequence[memoryview]) -> list[int]:
    offset = 0
    for buffer in buffers:
        flat = buffer.cast("B")
        written = 0
        while written < len(flat):
            written += os.pwrite(file, flat[written:], offset + written)
        offset += aligned(len(flat))
    os.ftruncate(file, max(offset, 1))
    return [b.nbytes for b in buffers]


def _download(file: int, buffers: Sequence[memoryview]) -> None:
    offset = 0
    for buffer in buffers:
        flat = buffer.cast("B")
        read = 0
        while read < len(flat):
            read += os.preadv(file, [flat[read:]], offset + read)
        offset += aligned(len(flat))

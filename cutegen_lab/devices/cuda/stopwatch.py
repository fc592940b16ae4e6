"""The parent's half of a stopwatch: each method is one request to the worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.protocols import Cancel
from cutegen_lab.core.stopwatch import Mode, ReferenceKind, Samples, Stopwatch, Subject
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.devices.cuda.process import START_SECONDS, SharedMemory, WorkerProcess, fault_of
from cutegen_lab.devices.cuda.worker_protocol import lean, problem_to_request

COMPILE_SECONDS = {"eager": 30.0, "channels_last": 30.0, "compile": 180.0, "max-autotune": 900.0}
TF32 = "off for matrix products, on for cuDNN: PyTorch's defaults, unless the problem's text says otherwise"
TF32_ALLOWED = "on for matrix products, as the problem asks; on for cuDNN, unless it says otherwise"
_CLOCKS: Mapping[Mode, str] = {
    "cold": "CUDA graph of {calls} calls between two events",
    "warm": "CUDA graph of {calls} calls between two events",
    "events": "single call between two events",
    "records": "CUPTI's records of a single call's kernels, from the first's beginning to the last's end",
}
_FLUSHES: Mapping[Mode, str] = {
    "cold": "cold L2: every call on tensors of its own, L2 read over before",
    "warm": "warm L2: all calls on the same tensors",
    "events": "L2 written over before each call",
    "records": "cold L2: read over before each call",
}


def conditions(hello: Mapping[str, Any]) -> Mapping[str, str]:
    """Conditions from a worker's answer to ``hello``."""
    versions = {
        "GPU": hello["name"], "driver": hello["driver"], "CUDA driver": hello["cuda_driver"], "torch": hello["torch"],
        "torch's CUDA": hello["cuda"], "TF32 in baselines": TF32,
    }  # fmt: skip
    return {name: value for name, value in versions.items() if value}


class CudaStopwatch:
    """A :class:`~cutegen_lab.core.stopwatch.Stopwatch` on one worker. ``release`` is called once, when the stopwatch
    closes. ``numbers`` gives each open stopwatch its number."""

    def __init__(
        self, worker: WorkerProcess, tensors: Sequence[TensorSpec], cancel: Cancel, watchdog: float,
        release: Callable[[], None], numbers: Iterator[int] | None = None,
    ) -> None:  # fmt: skip
        self._worker, self._tensors, self._cancel, self._watchdog = worker, tensors, cancel, watchdog
        self._release: Callable[[], None] | None = release
        self._numbers = numbers or count()
        self._number, self._beside = next(self._numbers), list[CudaStopwatch]()
        self._calls: dict[str, int] = {}
        self._ended = ""  # who ended the worker, and why
        self._outputs: Sequence[TensorSpec] = ()
        self.conditions = conditions(worker.hello)
        self.dram_bytes_per_s, self.l2_bytes = 0.0, 0
        self.modes: Sequence[Mode] = ("cold", "warm", "events")

    def open(self, inputs: Sequence[memoryview]) -> Fault | None:
        """Allocates the tensor sets. Its time limit is that of a worker's start: no candidate runs, and PyTorch may be
        read from a slow disk. Raises Cancelled."""
        self._outputs = self._tensors[len(inputs) :]
        with SharedMemory([buffer.nbytes for buffer in inputs]) as memory:
            memory.write(inputs)
            specs = [spec.to_dict() for spec in self._tensors]
            request = {"verb": "open", "inputs": specs[: len(inputs)], "outputs": specs[len(inputs) :]}
            answer = self._ask("the workload's tensors", {**request, **memory.request}, START_SECONDS + memory.seconds)
        if isinstance(answer, Fault):
            return answer
        self.dram_bytes_per_s, self.l2_bytes = answer["dram_bytes_per_s"], answer["l2_bytes"]
        if self._worker.hello["records"]:
            self.modes = (*self.modes, "records")
        return None

    def open_another(self, tensors: Sequence[TensorSpec], inputs: Sequence[memoryview]) -> Stopwatch | Fault:
        opened = CudaStopwatch(self._worker, tensors, self._cancel, self._watchdog, lambda: None, self._numbers)
        self._beside.append(opened)
        return opened.open(inputs) or opened

    def add_build(self, name: str, build: Build) -> Subject | Fault:
        return self._add(name, {"build": lean(build).to_dict()})

    def add_reference(self, name: str, problem: Problem, kind: ReferenceKind) -> Subject | Fault:
        if problem.tf32:
            self.conditions = {**self.conditions, "TF32 in baselines": TF32_ALLOWED}
        return self._add(name, {"problem": problem_to_request(problem), "kind": kind}, COMPILE_SECONDS[kind])

    def add_copy(self, name: str) -> Subject | Fault:
        return self._add(name, {})

    def sample(self, name: str, mode: Mode, count: int, seed: int) -> Samples | Fault:
        request = {"verb": "sample", "name": name, "mode": mode, "count": count, "seed": seed}
        answer = self._ask(name, request)
        if isinstance(answer, Fault):
            return answer
        clock = _CLOCKS[mode].format(calls=self._calls[name])
        return Samples(tuple(answer["times_us"]), clock, _FLUSHES[mode], answer["readings"])

    def outputs(self, name: str, call: int) -> list[memoryview] | Fault:
        with SharedMemory([spec.storage_bytes for spec in self._outputs]) as memory:
            answer = self._ask(name, {"verb": "outputs", "call": call, **memory.request}, memory.seconds)
            return answer if isinstance(answer, Fault) else memory.views

    def close(self) -> None:
        """Releases the device; may be called more than once."""
        if self._release is None:
            return
        for other in self._beside:
            other.close()
        try:
            if self._worker.alive and isinstance(self._ask("closing", {"verb": "close"}), Fault):
                self._worker.kill()  # frees what the worker still holds
        except Cancelled:
            pass  # the worker is dead and has freed everything
        finally:
            release, self._release = self._release, None
            release()

    def _add(self, name: str, fields: dict[str, Any], seconds: float = 0.0) -> Subject | Fault:
        answer = self._ask(name, {"verb": "add", "name": name, **fields}, seconds)
        if isinstance(answer, Fault):
            return answer
        self._calls[name] = answer["calls"]
        return Subject(name, answer["calls"], tuple(answer["notes"]))

    def _ask(self, who: str, request: dict[str, Any], seconds: float = 0.0) -> dict[str, Any] | Fault:
        if self._ended:
            return Fault(Verdict.DEVICE_ERROR, f"the worker ended with {self._ended}")
        answer = self._worker.ask({**request, "bench": self._number}, self._watchdog + seconds, self._cancel)
        if answer["ok"]:
            return answer
        if not self._worker.alive:
            self._ended = f"{who}: {answer['message']}"
        return fault_of(answer)

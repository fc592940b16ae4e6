"""Timers for the configs of a search: a GPU's stopwatch, or the emulator's performance model."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from loky import cpu_count

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import Cancelled, SetupError
from cutegen_lab.core.forks import Forked, ForkEnded, Forks
from cutegen_lab.core.machine_memory import available_bytes
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Cancel, Device, Judge
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.stopwatch import HasStopwatch, Stopwatch
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.perfmodel import MODEL
from cutegen_lab.tuning.evaluations import Kind

_KEPT_BYTES = 4 << 30  # maximum bytes of inputs that are kept on the host
# Largest total tensor size with which all workloads stay open; a stopwatch holds 16 or more sets.
_TOGETHER_BYTES = 1 << 30
_PROCESS_BYTES = 1 << 30  # memory of a predicting process, in addition to copies of the tensors


def for_workload(problem: Problem, workload: Workload) -> Problem:
    """The problem with ``workload`` as its main workload."""
    others = tuple(w for w in problem.workloads if w is not workload)
    return problem.with_workloads((workload, *others))


class PredictedTimer:
    """Times predicted by the emulator for ``gpu``: one sample per config, the same at every call.

    :meth:`prepare` predicts in processes of ``forks`` (one for each calling thread), as many at a time as memory
    allows. ``busy_seconds``: prediction time divided by the number of cores.
    """

    kind: Kind = "predicted"
    repeats = changes = False

    def __init__(
        self, problem: Problem, judge: Judge, gpu: GpuSpec, cancel: Cancel, forks: Forks
    ) -> None:  # fmt: skip
        self._problem, self._cancel, self._forks = problem, cancel, forks
        self._predict = partial(predicted, judge, gpu)
        self._mine = threading.local()
        self._every: list[Forked[tuple[Timing | Fault, float]]] = []
        self._room = threading.Semaphore(_concurrent_predictions(problem.workloads))
        self._made: dict[tuple[str, str], Timing | Fault] = {}
        self._lock = threading.Lock()
        self.device, self.driver = gpu.name, MODEL
        self.busy_seconds = 0.0

    def prepare(self, workloads: Sequence[Workload], name: str, artifact: Artifact) -> None:
        for workload in workloads:
            self._made[workload.name, name] = self._predicted(workload, artifact)

    def open(self, artifacts: Mapping[str, Artifact]) -> None:
        pass

    def time(
        self, workload: Workload, artifacts: Mapping[str, Artifact], samples: int
    ) -> Iterator[tuple[str, Sequence[float] | Fault]]:
        for name, artifact in artifacts.items():
            timing = self._made.pop((workload.name, name), None) or self._predicted(workload, artifact)
            yield name, timing if isinstance(timing, Fault) else (timing.time_us,)

    def time_interleaved(
        self, workload: Workload, artifacts: Mapping[str, Artifact]
    ) -> Iterator[tuple[str, Sequence[float]]]:
        for name, times in self.time(workload, artifacts, 1):
            if not isinstance(times, Fault):
                yield name, times

    def close(self) -> None:
        """Ends predictions under way."""
        for forked in self._every:
            forked.close()

    def _predicted(self, workload: Workload, artifact: Artifact) -> Timing | Fault:
        problem = for_workload(self._problem, workload)
        mine = replace(artifact, builds={workload.name: artifact.builds[workload.name]})
        with self._room:
            try:
                timing, seconds = self._fork()(problem, mine, cancelled=self._cancel.is_set)
            except ForkEnded as error:  # the next call starts another process
                self._mine.__dict__.clear()
                why = f"the process that predicted it ended{f': {error}' if str(error) else ''}"
                return Fault(Verdict.DEVICE_ERROR, why)
        with self._lock:
            self.busy_seconds += seconds / cpu_count()
        return timing

    def _fork(self) -> Forked[tuple[Timing | Fault, float]]:
        """The calling thread's process."""
        if not hasattr(self._mine, "forked"):
            self._mine.forked = self._forks.fork(self._predict)
            with self._lock:
                self._every.append(self._mine.forked)
        found: Forked[tuple[Timing | Fault, float]] = self._mine.forked
        return found


def predicted(judge: Judge, gpu: GpuSpec, problem: Problem, artifact: Artifact) -> tuple[Timing | Fault, float]:
    """Predicted time, or a fault, and the seconds that predicting took."""
    from cutegen_lab.devices.emulator import EmulatorDevice

    started = time.monotonic()
    timing, _ = judge.time(problem, artifact, EmulatorDevice(), gpu, lambda _: None, threading.Event())
    return timing, time.monotonic() - started


def _concurrent_predictions(workloads: Sequence[Workload]) -> int:
    """Number of predictions that fit in memory at once; at least one."""
    each = _PROCESS_BYTES + 4 * max(workload.nbytes for workload in workloads)
    return max(1, int(available_bytes() // each))


class MeasuredTimer:
    """Times measured on a GPU: CUDA graphs with a cold L2, as the judge times, without its baselines.

    Takes the device at :meth:`open` or the first timing and holds it until :meth:`close`. Stopwatches stay open between
    calls, for several workloads if their tensors are small; a fault closes them, since it may have spoiled the device.
    ``seconds`` bounds the final interleaved timing of one workload.
    """

    kind: Kind = "measured"
    repeats = True

    def __init__(
        self, problem: Problem, device: HasStopwatch, name: str, cancel: Cancel, seconds: float = 4.0,
        seed: Callable[[], int] = lambda: secrets.randbits(62),
    ) -> None:  # fmt: skip
        self._problem, self._timer, self._cancel = problem, device, cancel
        self._together = sum(s.storage_bytes for w in problem.workloads for s in w.tensors) <= _TOGETHER_BYTES
        self.changes = len(problem.workloads) > 1 and not self._together
        self._seconds, self._seed = seconds, seed
        self._open: dict[str, _Open] = {}  # open stopwatches by workload; the one that holds the device comes first
        self._inputs: dict[str, list[memoryview]] = {}
        self._drawing = threading.Lock()
        self._ahead = True  # whether to load configs in advance, until one does not fit or faults
        self.busy_seconds = 0.0
        self.device = device.conditions.get("GPU", name)
        self.driver = device.conditions.get("driver", "unknown driver")

    def time(
        self, workload: Workload, artifacts: Mapping[str, Artifact], samples: int
    ) -> Iterator[tuple[str, Sequence[float] | Fault]]:
        for name, artifact in artifacts.items():
            if self._cancel.is_set():
                raise Cancelled()
            found = self._sampled(workload, name, artifact, samples)
            if isinstance(found, Fault):
                self.close()
            yield name, found

    def prepare(self, workloads: Sequence[Workload], name: str, artifact: Artifact) -> None:
        """Draws inputs before the GPU is needed, if those of all workloads fit in memory together."""
        if self._together:
            for workload in workloads:
                self._inputs_of(workload)

    def open(self, artifacts: Mapping[str, Artifact]) -> None:
        for workload in self._problem.workloads if self._together else self._problem.workloads[:1]:
            self._watch(workload)
            for name, artifact in artifacts.items() if self._ahead else ():
                if self._added(workload, name, artifact):  # if it fails, timing it reports the fault
                    self._ahead = False
                    self.close()
                    return

    def time_interleaved(
        self, workload: Workload, artifacts: Mapping[str, Artifact]
    ) -> Iterator[tuple[str, Sequence[float]]]:
        from cutegen_lab.judge.timing.interleaved import Effort, InterleavedTimer

        left = dict(artifacts)
        while left:
            crowded = self._watch(workload).held - left.keys()
            faults = {name: fault for name, a in left.items() if (fault := self._added(workload, name, a))}
            if not faults:
                timer = InterleavedTimer(self._watch(workload).watch, list(left), self._seed, self._cancel)
                started = time.monotonic()
                rounds = timer.converge(Effort(seconds=self._seconds))
                self.busy_seconds += time.monotonic() - started
                if not isinstance(rounds, Fault):
                    yield from rounds.times_us.items()
                    return
                faults = {timer.names[0]: rounds}  # only a fault of the first subject ends a timing
            self.close()
            bad, fault = next(iter(faults.items()))
            if not crowded or fault.verdict is not Verdict.OUT_OF_MEMORY:
                del left[bad]

    def close(self) -> None:
        for first in list(self._open.values())[:1]:
            first.watch.close()
        self._open.clear()

    def _sampled(self, workload: Workload, name: str, artifact: Artifact, samples: int) -> Sequence[float] | Fault:
        fault = self._added(workload, name, artifact)
        if fault and fault.verdict is Verdict.OUT_OF_MEMORY:  # perhaps earlier configs take the memory
            self.close()
            fault = self._added(workload, name, artifact)
        if fault:
            return fault
        started = time.monotonic()
        found = self._watch(workload).watch.sample(name, "cold", samples + 1, self._seed())  # the first sample warms up
        self.busy_seconds += time.monotonic() - started
        return found if isinstance(found, Fault) else found.times_us[1:]

    def _added(self, workload: Workload, name: str, artifact: Artifact) -> Fault | None:
        opened = self._watch(workload)
        if name not in opened.held:
            added = opened.watch.add_build(name, artifact.builds[workload.name])
            if isinstance(added, Fault):
                return added
            opened.held.add(name)
        return None

    def _watch(self, workload: Workload) -> _Open:
        """The workload's stopwatch, opened if necessary. Raises SetupError if the device has no room."""
        if workload.name not in self._open:
            if not self._together:
                self.close()
            views = self._inputs_of(workload)
            first = next(iter(self._open.values()), None)
            watch = (
                first.watch.open_another(workload.tensors, views)
                if first
                else self._timer.stopwatch(workload.tensors, views, self._cancel)
            )
            if isinstance(watch, Fault) and first:  # no room next to other open stopwatches
                self.close()
                return self._watch(workload)
            if isinstance(watch, Fault):
                raise SetupError(f"{workload.name} cannot be timed on the {self.device}: {watch.message}", "")
            self._open[workload.name] = _Open(watch)
        return self._open[workload.name]

    def _inputs_of(self, workload: Workload) -> list[memoryview]:
        """The workload's inputs, cached if small: a search alternates between workloads."""
        from cutegen_lab.judge.timing.timed_outputs import inputs_for
        from cutegen_lab.problems import Reference
        from cutegen_lab.problems.tensors import to_bytes

        with self._drawing:
            if kept := self._inputs.get(workload.name):
                return kept
            problem = for_workload(self._problem, workload)
            views = to_bytes(inputs_for(problem, Reference(problem), self._seed()), workload.inputs)
            if sum(v.nbytes for v in (*views, *(v for kept in self._inputs.values() for v in kept))) <= _KEPT_BYTES:
                self._inputs[workload.name] = views
            return views


@dataclass
class _Open:
    """An open stopwatch and the names of the builds added to it."""

    watch: Stopwatch
    held: set[str] = field(default_factory=set)


SearchTimer = PredictedTimer | MeasuredTimer


@contextmanager
def timer_for(
    problem: Problem, judge: Judge, device: Device, gpu: GpuSpec, cancel: Cancel, forks: Callable[[], Forks]
) -> Iterator[SearchTimer]:
    """Context with a timer: the device's stopwatch if it has one, otherwise the model."""
    made: SearchTimer = (
        MeasuredTimer(problem, device, device.name, cancel)
        if isinstance(device, HasStopwatch)
        else PredictedTimer(problem, judge, gpu, cancel, forks())
    )
    with closing(made):
        yield made


__all__ = ["MeasuredTimer", "PredictedTimer", "SearchTimer", "for_workload", "timer_for"]

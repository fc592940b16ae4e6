"""What times the configs of a search: a GPU's stopwatch, or the emulator's model of one."""

from __future__ import annotations

import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import replace

import psutil
from loky import ProcessPoolExecutor, cpu_count, process_executor

from cutegen_lab.compile.isolate import die_with_parent
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import Cancelled, SetupError
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Cancel, Device, Judge
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.stopwatch import Stopwatch, TimesInTurns
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.tuning import MODEL
from cutegen_lab.tuning.evaluations import Kind

_KEPT_BYTES = 4 << 30  # of inputs, on the host
_PROCESS_BYTES = 1 << 30  # that a process which predicts needs, beside copies of the tensors
_POLL_SECONDS = 0.1


def of_workload(problem: Problem, workload: Workload) -> Problem:
    """The problem with ``workload`` as the one being optimised."""
    others = tuple(w for w in problem.workloads if w is not workload)
    return problem.with_workloads((workload, *others))


class PredictedClock:
    """Times are the emulator's predictions for ``gpu``: one a config, and the same each time.

    They are made in ``processes`` of their own at most (more of them start more slowly than they predict), from when
    :meth:`prepare` names a config.
    ``busy_seconds`` is the share of the cores' time that predictions took.
    """

    kind: Kind = "predicted"
    repeats = False

    def __init__(self, problem: Problem, judge: Judge, gpu: GpuSpec, cancel: Cancel, processes: int = 8) -> None:
        self._problem, self._judge, self._gpu, self._cancel = problem, judge, gpu, cancel
        self._workers = min(processes, cpu_count(), _room_for(problem.workloads))
        self._pool: ProcessPoolExecutor | None = self._started()  # on this thread, with which its processes end
        self._coming: dict[tuple[str, str], Future[tuple[Timing | Fault, float]]] = {}
        self._lock = threading.Lock()
        self.device, self.driver = gpu.name, MODEL
        self.busy_seconds = 0.0

    def prepare(self, workloads: Sequence[Workload], name: str, artifact: Artifact) -> None:
        for workload in workloads:
            self._begun(workload, name, artifact)

    def time(
        self, workload: Workload, artifacts: Mapping[str, Artifact], samples: int
    ) -> Iterator[tuple[str, Sequence[float] | Fault]]:
        for name, artifact in artifacts.items():
            timing = self._awaited(workload, name, self._begun(workload, name, artifact))
            yield name, timing if isinstance(timing, Fault) else (timing.time_us,)

    def in_turns(self, workload: Workload, artifacts: Mapping[str, Artifact]) -> Iterator[tuple[str, Sequence[float]]]:
        for name, times in self.time(workload, artifacts, 1):
            if not isinstance(times, Fault):
                yield name, times

    def close(self) -> None:
        """Ends what is still being predicted."""
        with self._lock:
            pool, self._pool = self._pool, None
            self._coming.clear()
        if pool is not None:
            pool.shutdown(kill_workers=True)

    def _started(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(self._workers, initializer=_begin, initargs=(self._judge, self._gpu))
        pool.submit(os.getpid)  # they start while the first config compiles
        return pool

    def _begun(self, workload: Workload, name: str, artifact: Artifact) -> Future[tuple[Timing | Fault, float]]:
        problem = of_workload(self._problem, workload)
        mine = replace(artifact, builds={workload.name: artifact.builds[workload.name]})
        with self._lock:
            if (workload.name, name) not in self._coming:
                self._pool = self._pool or self._started()
                future = self._pool.submit(_predicted, problem, mine)
                self._coming[workload.name, name] = future
            return self._coming[workload.name, name]

    def _awaited(self, workload: Workload, name: str, coming: Future[tuple[Timing | Fault, float]]) -> Timing | Fault:
        while True:
            if self._cancel.is_set():
                raise Cancelled()
            try:
                timing, seconds = coming.result(_POLL_SECONDS)
            except TimeoutError:
                continue
            except BrokenProcessPool as error:  # out of memory, most often
                self.close()
                return Fault(Verdict.DEVICE_ERROR, f"the process that predicted it ended: {error}")
            with self._lock:
                self._coming.pop((workload.name, name), None)
            self.busy_seconds += seconds / self._workers
            return timing


_given: tuple[Judge, GpuSpec] | None = None  # in a process that predicts


def _begin(judge: Judge, gpu: GpuSpec) -> None:
    """First in a process that predicts."""
    global _given
    die_with_parent()
    _given = judge, gpu
    process_executor._USE_PSUTIL = False  # loky's guard against leaks would take kept tensors for one
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the search that hears Ctrl-C


def _predicted(problem: Problem, artifact: Artifact) -> tuple[Timing | Fault, float]:
    """The prediction, and the seconds that it took."""
    from cutegen_lab.devices.emulator import EmulatorDevice

    assert _given is not None
    judge, gpu = _given
    started = time.monotonic()
    timing, _ = judge.time(problem, artifact, EmulatorDevice(), gpu, lambda _: None, threading.Event())
    return timing, time.monotonic() - started


def _room_for(workloads: Sequence[Workload]) -> int:
    """How many predictions there is memory for at once, one at least."""
    each = _PROCESS_BYTES + 4 * max(workload.compulsory_bytes for workload in workloads)
    return max(1, int(psutil.virtual_memory().available // each))


class MeasuredClock:
    """Times are a GPU's: CUDA graphs with a cold L2, as the judge takes them, without its baselines.

    The stopwatch stays open from one call to the next of the same workload; a fault closes it, for it may have spoiled
    the device. ``seconds`` bound the final timing in turns of one workload.
    """

    kind: Kind = "measured"
    repeats = True

    def __init__(
        self, problem: Problem, device: TimesInTurns, name: str, cancel: Cancel, seconds: float = 10.0,
        seed: Callable[[], int] = lambda: secrets.randbits(62),
    ) -> None:  # fmt: skip
        self._problem, self._timer, self._cancel = problem, device, cancel
        self._seconds, self._seed = seconds, seed
        self._open: tuple[str, Stopwatch, set[str]] | None = None
        self._inputs: dict[str, list[memoryview]] = {}
        self.busy_seconds = 0.0
        self.device = name
        watch, _ = self._watch(problem.workload)
        self.device = watch.conditions.get("GPU", name)
        self.driver = watch.conditions.get("driver", "unknown driver")

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
        """A GPU times one config at a time, and loads it then."""

    def in_turns(self, workload: Workload, artifacts: Mapping[str, Artifact]) -> Iterator[tuple[str, Sequence[float]]]:
        from cutegen_lab.judge.turns import Effort, Turns

        left = dict(artifacts)
        while left:
            watch, held = self._watch(workload)
            added = {name: self._added(watch, held, workload, name, artifact) for name, artifact in left.items()}
            if not (bad := next((name for name, fault in added.items() if fault), None)):
                turns = Turns(watch, list(left), self._seed, self._cancel)
                started = time.monotonic()
                taken = turns.converge(Effort(seconds=self._seconds))
                self.busy_seconds += time.monotonic() - started
                if not isinstance(taken, Fault):
                    yield from taken.times_us.items()
                    return
                bad = turns.names[0]  # whose fault ends a timing
            self.close()
            del left[bad]

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _sampled(self, workload: Workload, name: str, artifact: Artifact, samples: int) -> Sequence[float] | Fault:
        watch, held = self._watch(workload)
        if fault := self._added(watch, held, workload, name, artifact):
            return fault
        started = time.monotonic()
        found = watch.sample(name, "cold", samples + 1, self._seed())  # the first warms up
        self.busy_seconds += time.monotonic() - started
        return found if isinstance(found, Fault) else found.times_us[1:]

    def _added(
        self, watch: Stopwatch, held: set[str], workload: Workload, name: str, artifact: Artifact
    ) -> Fault | None:
        if name not in held:
            added = watch.add_build(name, artifact.builds[workload.name])
            if isinstance(added, Fault):
                return added
            held.add(name)
        return None

    def _watch(self, workload: Workload) -> tuple[Stopwatch, set[str]]:
        """A stopwatch for ``workload`` and the names it holds. Raises SetupError where there is no room for it."""
        if self._open is not None and self._open[0] == workload.name:
            return self._open[1], self._open[2]
        self.close()
        views = self._inputs.get(workload.name) or self._drawn(workload)
        watch = self._timer.stopwatch(workload.tensors, views, self._cancel)
        if isinstance(watch, Fault):
            raise SetupError(f"{workload.name} cannot be timed on the {self.device}: {watch.message}", "")
        self._open = (workload.name, watch, set())
        return watch, self._open[2]

    def _drawn(self, workload: Workload) -> list[memoryview]:
        """Inputs of a workload; kept where they are small, for a search goes to and fro between workloads."""
        from cutegen_lab.judge.timed_outputs import inputs_for
        from cutegen_lab.problems import Reference
        from cutegen_lab.problems.tensors import to_bytes

        problem = of_workload(self._problem, workload)
        inputs = inputs_for(problem, Reference(problem), self._seed())
        views = to_bytes(inputs, workload.inputs)
        if sum(v.nbytes for v in (*views, *(v for kept in self._inputs.values() for v in kept))) <= _KEPT_BYTES:
            self._inputs[workload.name] = views
        return views


Clocks = PredictedClock | MeasuredClock


@contextmanager
def clock_for(problem: Problem, judge: Judge, device: Device, gpu: GpuSpec, cancel: Cancel) -> Iterator[Clocks]:
    """The device's own clock where it has one, else the model's."""
    made: Clocks = (
        MeasuredClock(problem, device, device.name, cancel)
        if isinstance(device, TimesInTurns)
        else PredictedClock(problem, judge, gpu, cancel)
    )
    with closing(made):
        yield made


__all__ = ["Clocks", "MeasuredClock", "PredictedClock", "clock_for", "of_workload"]

"""Checks workloads on an emulator in several processes. Each process keeps one core busy.

While this process checks a large workload of the analyst's (its float64 reference uses all cores), other processes
check the small ones. If all are small, this process starts with the first, on which most wrong kernels fail, and the
others with the last, the most expensive. When this process is done with its own workloads, it checks those whose job
has not started.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from loky import cpu_count

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.forks import ForkEnded, Forks, Tasks
from cutegen_lab.core.machine_memory import available_bytes
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Cancel, Device, MakeEmulator
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import WorkloadCheck
from cutegen_lab.judge.checks.case import Case
from cutegen_lab.judge.checks.workload_checks import Omitted, draw_checks
from cutegen_lab.problems import Reference

Plan = Sequence[tuple[Workload, tuple[str, ...]]]  # workloads to check, each with the names of its draws
# Free memory, in bytes, that other processes need: the process that they are forked from, and what they allocate.
_ROOM = 1 << 30
LARGE_BYTES = 1 << 20  # the analyst's workloads count as large if together they have at least this many bytes

CheckHere = Callable[[Workload, Sequence[str], Omitted], Iterator[WorkloadCheck]]  # checks a workload in this process


@dataclass(frozen=True)
class Job:
    """One workload to check in another process."""

    make_emulator: MakeEmulator
    """Makes the emulator."""
    problem: Problem
    """Problem of the workload."""
    workload: Workload
    """Workload to check."""
    build: Build
    """The candidate's build for it."""
    arch: str
    """Target architecture."""
    names: tuple[str, ...]
    """Draws to run."""
    seed: int
    """Seed from which the draws' seeds are derived."""


@dataclass(frozen=True)
class JobResult:
    """Result of a :class:`Job`."""

    checks: tuple[WorkloadCheck, ...]
    """Checks up to the first that did not pass."""
    omitted: Omitted
    """Draws and workloads that were not affordable."""

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.verdict.passed for check in self.checks)


def run_job(job: Job, cancel: Cancel | None = None) -> JobResult:
    """Checks of ``job`` on an emulator of this process. Raises Cancelled."""
    emulator, checks, omitted = job.make_emulator(), list[WorkloadCheck](), Omitted()
    assert emulator is not None  # the parent process has made one
    case = Case(
        job.problem, Reference(job.problem), job.workload, job.build, emulator, target_gpu(job.arch),
        cancel or threading.Event(),
    )  # fmt: skip
    secret = random.Random(job.seed)  # noqa: S311 - the seed itself is secret
    for check in draw_checks(case, job.names, lambda: secret.getrandbits(63), omitted, lambda line: None):
        checks.append(check)
        if not check.verdict.passed:
            break
    return JobResult(tuple(checks), omitted)


class ParallelChecks:
    """``jobs``, started immediately, in their order, in processes of ``forks``; :meth:`close` ends those still
    running."""

    def __init__(self, jobs: Sequence[Job], forks: Forks | None, cancel: Cancel) -> None:
        self._workers: int = max(1, cpu_count() - 1)
        self._tasks = Tasks(forks, cancel, self._workers)
        self._running: dict[str, Future[JobResult]] = {
            job.workload.name: self._tasks.begin(run_job, job) for job in jobs
        }

    def __contains__(self, workload: Workload) -> bool:
        return workload.name in self._running

    def __bool__(self) -> bool:
        return bool(self._running)

    def result_of(self, workload: Workload) -> JobResult:
        """Waits for the result of one workload. Raises Cancelled, ForkEnded."""
        return self._running[workload.name].result()

    def taken_back(self) -> Iterator[str]:
        """Cancels jobs that have not started, from the last to the first, and yields the names of their workloads."""
        for name in list(reversed(self._running)):
            if self._running[name].cancel():
                del self._running[name]
                yield name

    def busy_cores(self) -> int:
        """Number of cores the jobs keep busy."""
        return min(self._workers, sum(not future.done() for future in self._running.values()))

    def failed(self) -> bool:
        """Whether a finished job did not pass. Jobs whose process ended do not count: they are checked again."""
        done = [future for future in self._running.values() if future.done() and future.exception() is None]
        return any(not future.result().passed for future in done)

    def close(self) -> None:
        self._tasks.close()


def checks_in_order(
    plan: Plan, check_here: CheckHere, parallel: ParallelChecks, omitted: Omitted
) -> Iterator[tuple[Workload, WorkloadCheck]]:
    """Checks of all workloads of ``plan``, in its order; ends after the first that fails. While the jobs of
    ``parallel`` run, this process calls ``check_here`` for the other workloads, then for those whose job has not
    started yet, beginning with the last. Draws for which there was no time are added to ``omitted``. Raises
    Cancelled."""
    checked_here: dict[str, JobResult] = {}
    of_plan = {workload.name: (workload, names) for workload, names in plan}
    of_this_process = [workload.name for workload, _ in plan if parallel and workload not in parallel]
    for workload, names in map(of_plan.__getitem__, chain(of_this_process, parallel.taken_back())):
        checks, mine = list[WorkloadCheck](), Omitted()
        for check in check_here(workload, names, mine):
            checks.append(check)
            if not check.verdict.passed or parallel.failed():
                break
        checked_here[workload.name] = JobResult(tuple(checks), mine)
        if parallel.failed() or not checked_here[workload.name].passed:
            break
    for workload, names in plan:
        found = checked_here.get(workload.name)
        if workload in parallel:
            with suppress(ForkEnded):  # out of memory: check it in this process
                found = parallel.result_of(workload)
        if found is None:
            yield from ((workload, check) for check in check_here(workload, names, omitted))
            continue
        omitted.fewer_draws.extend(found.omitted.fewer_draws)
        omitted.not_run.extend(found.omitted.not_run)
        yield from ((workload, check) for check in found.checks)


def for_other_processes(plan: Plan) -> Plan:
    """The workloads of ``plan`` that other processes check, in the order in which they start."""
    if sum(workload.nbytes for workload, _ in plan if not workload.derived) >= LARGE_BYTES:
        return [pair for pair in plan if pair[0].derived]
    return plan[:0:-1]


def can_fork(device: Device, make_emulator: MakeEmulator | None) -> bool:
    """Whether other processes can check on ``device``: a core and memory are free, and ``make_emulator`` makes an
    emulator."""
    if device.kind != "emulator" or make_emulator is None or cpu_count() < 2 or available_bytes() < _ROOM:
        return False
    return type(make_emulator()) is type(device)

"""Checks small workloads on an emulator in other processes, while this one checks the analyst's own.

An emulator keeps one core busy with a small workload, while PyTorch computes float64 references of a large one on all
the others.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

import torch
from loky import cpu_count

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.forks import ForkEnded, Forks, Tasks
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Cancel, Device, MakeEmulator
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import WorkloadCheck
from cutegen_lab.judge.checks.case import Case
from cutegen_lab.judge.checks.workload_checks import LeftOut, checks_of
from cutegen_lab.judge.reference_device import threads
from cutegen_lab.problems import Reference

Plan = Sequence[tuple[Workload, tuple[str, ...]]]  # the workloads of a check, and the draws of each
LARGE_BYTES = 32 << 20  # total of the analyst's workloads from which extra processes for the small ones pay off


Drawn = Callable[[Workload, Sequence[str], LeftOut], Iterator[WorkloadCheck]]  # the checks of a workload, here


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
class Checked:
    """Result of a :class:`Job`."""

    checks: tuple[WorkloadCheck, ...]
    """Checks up to the first that did not pass."""
    left: LeftOut
    """What was not affordable."""

    @property
    def passed(self) -> bool:
        return all(check.verdict.passed for check in self.checks)


def checked(job: Job, cancel: Cancel | None = None) -> Checked:
    """Checks of ``job`` on an emulator of this process. Raises Cancelled."""
    emulator, checks, left = job.make_emulator(), list[WorkloadCheck](), LeftOut()
    assert emulator is not None  # the parent process could make one
    case = Case(
        job.problem, Reference(job.problem), job.workload, job.build, emulator, target_gpu(job.arch),
        cancel or threading.Event(),
    )  # fmt: skip
    secret = random.Random(job.seed)  # noqa: S311 - the seed itself is secret
    for check in checks_of(case, job.names, lambda: secret.getrandbits(63), left, lambda line: None):
        checks.append(check)
        if not check.verdict.passed:
            break
    return Checked(tuple(checks), left)


class Beside:
    """``jobs``, started at once in processes of ``forks``; :meth:`close` ends those still running."""

    def __init__(self, jobs: Sequence[Job], forks: Forks | None, cancel: Cancel) -> None:
        self._workers: int = max(1, cpu_count() - 1)
        self._tasks = Tasks(forks, cancel, self._workers)
        self._begun: Mapping[str, Future[Checked]] = {
            job.workload.name: self._tasks.begin(checked, job) for job in jobs
        }

    def __contains__(self, workload: Workload) -> bool:
        return workload.name in self._begun

    def __bool__(self) -> bool:
        return bool(self._begun)

    def of(self, workload: Workload) -> Checked:
        """Waits for the result of one workload. Raises Cancelled, ForkEnded."""
        return self._begun[workload.name].result()

    def busy(self) -> int:
        """Number of cores the jobs keep busy."""
        return min(self._workers, sum(not future.done() for future in self._begun.values()))

    def failed(self) -> bool:
        """Whether a finished job did not pass, or could not be checked."""
        done = [future for future in self._begun.values() if future.done()]
        return any(future.exception() is not None or not future.result().passed for future in done)

    def close(self) -> None:
        self._tasks.close()


def in_order(plan: Plan, drawn: Drawn, beside: Beside, left: LeftOut) -> Iterator[tuple[Workload, WorkloadCheck]]:
    """Checks of all workloads of ``plan``, in its order. Workloads not in ``beside`` are checked by ``drawn`` in this
    process meanwhile, until a job of ``beside`` fails. What was not affordable is recorded in ``left``. Raises
    Cancelled."""
    ahead: dict[str, Checked] = {}
    for workload, names in (pair for pair in plan if beside and pair[0] not in beside):
        checks, mine = list[WorkloadCheck](), LeftOut()
        for check in _on_other_cores(drawn(workload, names, mine), beside):
            checks.append(check)
            if not check.verdict.passed or beside.failed():
                break
        ahead[workload.name] = Checked(tuple(checks), mine)
    for workload, names in plan:
        found = ahead.get(workload.name)
        if workload in beside:
            with suppress(ForkEnded):  # out of memory: check it in this process
                found = beside.of(workload)
        if found is None:
            yield from ((workload, check) for check in drawn(workload, names, left))
            continue
        left.fewer.extend(found.left.fewer)
        left.untold.extend(found.left.untold)
        yield from ((workload, check) for check in found.checks)


def _on_other_cores(checks: Iterator[WorkloadCheck], beside: Beside) -> Iterator[WorkloadCheck]:
    """``checks``, each with as many PyTorch threads as cores are free when it begins: one thread that waits for a core
    delays all the others."""
    while True:
        with threads(max(1, torch.get_num_threads() - beside.busy())):
            check = next(checks, None)
        if check is None:
            return
        yield check


def worthwhile(workloads: Sequence[Workload], device: Device, make_emulator: MakeEmulator | None) -> bool:
    """Whether to check the small ones of ``workloads`` in other processes: a core is free, the analyst's own are large,
    and ``make_emulator`` makes an emulator."""
    large = sum(w.compulsory_bytes for w in workloads if not w.derived)
    if device.kind != "emulator" or make_emulator is None or large < LARGE_BYTES or cpu_count() < 2:
        return False
    return type(make_emulator()) is type(device)

"""A second check of kernels that passed on a GPU: the emulator runs the small workloads too.

If the emulator finds a fault in a kernel whose answer on the GPU was wrong, that fault is reported as the cause.

A GPU does not report a read past the end of a tensor that happens to work, a read of unwritten memory, or a race
without effect. The emulator does. If it cannot execute a kernel, that is a note, not a verdict. It also finds faults in
the text of every workload's kernels without running them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from loky import cpu_count

from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.forks import ForkEnded, Forks, Tasks
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Cancel, Device, Examines, MakeEmulator, Say
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import WorkloadCheck
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.checks.case import Case
from cutegen_lab.problems import Reference

DISTRIBUTIONS = ("normal", "bits")
SYMPTOMS = (Verdict.WRONG_RESULT, Verdict.NON_DETERMINISTIC, Verdict.UNWRITTEN_OUTPUT)
# Not faults of the kernel, since it ran to its end on a GPU.
_NOT_A_FAULT = (Verdict.UNSUPPORTED, Verdict.HANG, Verdict.OUT_OF_MEMORY, Verdict.DEVICE_ERROR)
_CORES_LEFT = 2  # cores not used by checks: for the judge and the GPU's worker


class EmulatorRecheck:
    """Iterating yields a check for each small workload and distribution, passed or not. If the emulator cannot run a
    workload, the last check of the workload gives the reason. A workload that the candidate does not serve has no
    check.

    Starts immediately, in parallel with the GPU: each workload in a process of ``forks``, or one after another without
    them. ``make_emulator`` makes the emulator. Iterating raises Cancelled.
    """

    def __init__(
        self, problem: Problem, artifact: Artifact, make_emulator: MakeEmulator | None, seed: Callable[[], int],
        say: Say, cancel: Cancel, forks: Forks | None,
    ) -> None:  # fmt: skip
        self._say, self._cancel, self._main, arch = say, cancel, problem.workload.name, artifact.arch
        jobs = [
            RecheckJob(make_emulator, problem, workload, artifact.builds[workload.name], arch, (seed(), seed()))
            for workload in problem.check_workloads if make_emulator and workload.name in artifact.builds
        ]  # fmt: skip
        self._workers = max(1, cpu_count() - _CORES_LEFT) if forks else 1
        self._tasks = Tasks(forks, cancel, self._workers)
        self._analysis = self._tasks.begin(analyse_kernels, make_emulator, problem, artifact) if make_emulator else None
        self._running = [(job, self._tasks.begin(recheck_workload, job)) for job in jobs]

    def __iter__(self) -> Iterator[WorkloadCheck]:
        return self._checks()

    def _checks(self, until: str = "") -> Iterator[WorkloadCheck]:
        if self._analysis:
            try:
                yield from self._analysis.result()
            except ForkEnded:
                yield _not_analysed(self._main, "the emulator could not read the kernels: its process ended")
        for job, found in self._running:
            if self._cancel.is_set():
                raise Cancelled()
            name = job.workload.name
            self._say(f"check {name} (on the emulator)")
            try:
                yield from found.result()
            except ForkEnded:
                note = f"the emulator could not check {name}: its process ended"
                yield WorkloadCheck(name, DISTRIBUTIONS[0], job.seeds[0], Verdict.PASSED, note)
            if name == until:
                return

    def cause(self, workload: str) -> WorkloadCheck | None:
        """Fault that explains the GPU's wrong answer on ``workload``: the first found in the kernels' text, in that
        workload, or in those before it; None if there is none. Does not wait for later workloads."""
        for check in self._checks(until=workload):
            if check.fault:
                return check
        return None

    def busy_cores(self) -> int:
        """Number of cores that the checks still running keep busy."""
        return min(self._workers, sum(not found.done() for _, found in self._running))

    def close(self) -> None:
        """Ends the checks still running."""
        self._tasks.close()


@dataclass(frozen=True)
class RecheckJob:
    """One workload to run on an emulator, in a process of its own."""

    make_emulator: MakeEmulator
    """Makes the emulator."""
    problem: Problem
    """Problem of the workload."""
    workload: Workload
    """Workload to run."""
    build: Build
    """The candidate's build for it."""
    arch: str
    """Target architecture."""
    seeds: tuple[int, int]
    """Seed of each of ``DISTRIBUTIONS``."""


def recheck_workload(job: RecheckJob, cancel: Cancel | None = None) -> Sequence[WorkloadCheck]:
    """The emulator's checks of one workload; none without an emulator. Raises Cancelled."""
    emulator, checks = job.make_emulator(), list[WorkloadCheck]()
    if emulator is None:
        return checks
    with closing(emulator):
        reference, gpu = Reference(job.problem), target_gpu(job.arch)
        case = Case(job.problem, reference, job.workload, job.build, emulator, gpu, cancel or threading.Event())
        for number, (distribution, seed) in enumerate(zip(DISTRIBUTIONS, job.seeds, strict=True)):
            if (check := case.run(distribution, seed, first=number == 0)) is not None:
                checks.append(_attributed(check, job.workload, emulator))
                if checks[-1].reason:
                    break
    return checks


def analyse_kernels(
    make_emulator: MakeEmulator, problem: Problem, artifact: Artifact, cancel: Cancel | None = None
) -> Sequence[WorkloadCheck]:
    """A failed check for each workload, small or the analyst's, with a fault in its kernels' text; a passed check with
    a note for each workload of the analyst's whose kernels the emulator cannot read."""
    emulator, checks = make_emulator(), list[WorkloadCheck]()
    if isinstance(emulator, Examines):
        for workload in (*problem.check_workloads, *problem.workloads):
            build = artifact.builds.get(workload.name)
            if build is not None and (fault := emulator.examine(build, workload.tensors + build.plan.workspace)):
                name = f"text on {emulator.name}"
                if fault.verdict in _NOT_A_FAULT:
                    # For a small workload, the reason is reported when it is run.
                    if workload not in problem.check_workloads:
                        why = f"the {emulator.name} could not read the kernels of {workload.name}: {fault}"
                        checks.append(_not_analysed(workload.name, why))
                    continue
                checks.append(WorkloadCheck(workload.name, name, 0, fault.verdict, str(fault), fault=fault))
    return checks


def _not_analysed(workload: str, why: str) -> WorkloadCheck:
    return WorkloadCheck(workload, "text", 0, Verdict.PASSED, why)


def _attributed(check: WorkloadCheck, workload: Workload, emulator: Device) -> WorkloadCheck:
    """``check`` with the emulator named in its distribution and reason."""
    name = f"{check.distribution} on {emulator.name}"
    if check.verdict.passed:
        return replace(check, distribution=name)
    if check.verdict in _NOT_A_FAULT:
        note = f"the {emulator.name} could not check {workload.name}: {check.reason}"
        return replace(check, distribution=name, verdict=Verdict.PASSED, reason=note, fault=None)
    return replace(check, distribution=name, reason=f"{check.reason} (found on the {emulator.name})")

"""``StandardJudge``: fresh random inputs, float64 references, poisoned outputs, one verdict."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain

import torch

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.forks import Forks
from cutegen_lab.core.kept_memory import kept_memory, one_arena
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Cancel, Device, Inspects, MakeEmulator, Say
from cutegen_lab.core.roofline import GpuSpec, target_gpu
from cutegen_lab.core.stopwatch import HasStopwatch
from cutegen_lab.core.timeline import Timeline
from cutegen_lab.core.trial import CheckResult, Profile, Timing, WorkloadCheck
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.checks.case import Case
from cutegen_lab.judge.checks.emulator_recheck import SYMPTOMS, EmulatorRecheck
from cutegen_lab.judge.checks.gpu_start import gpu_started
from cutegen_lab.judge.checks.input_sensitivity import check_inputs_read, required_fraction
from cutegen_lab.judge.checks.parallel import (
    Job,
    ParallelChecks,
    Plan,
    can_fork,
    checks_in_order,
    for_other_processes,
)
from cutegen_lab.judge.checks.printed_output import ADVICE, PrintRecorder, uses_printf, with_printed_output
from cutegen_lab.judge.checks.sanitizers import sanitizer_checks
from cutegen_lab.judge.checks.workload_checks import Omitted, draw_checks
from cutegen_lab.judge.draws.schedule import draws, minimal_draws
from cutegen_lab.judge.draws.values import between
from cutegen_lab.judge.execution.buffers import BufferCache
from cutegen_lab.judge.execution.plan import validate_plan
from cutegen_lab.judge.profile import profile, timelines
from cutegen_lab.judge.reference_device import ReferenceDevice, free_gpu_cache, gpu_cache_freed
from cutegen_lab.judge.rounding import tf32
from cutegen_lab.judge.timing.counting import LoadCount, PendingCount
from cutegen_lab.judge.timing.interleaved import Effort
from cutegen_lab.judge.timing.measured import Job as TimingJob
from cutegen_lab.judge.timing.measured import time_interleaved
from cutegen_lab.judge.timing.timed_outputs import inputs_for, output_check
from cutegen_lab.judge.workload_choice import excess_size, sampled_share, select_workloads, why_no_reference
from cutegen_lab.problems import Reference
from cutegen_lab.problems.probes import TRIVIAL

_ELSEWHERE = "judge it on a GPU, or declare smaller inputs"


def _secret_seed() -> int:
    return secrets.randbits(63)


class StandardJudge:
    """A :class:`~cutegen_lab.core.protocols.Judge`. Seeds are secret until the verdict, then recorded.

    ``seed_source`` returns a 63-bit seed for each draw (tests pass a counter). ``deep``: also run the device's
    sanitizers on a kernel that passed. ``make_emulator``: the emulator checks the small workloads of kernels that
    passed on a GPU, and finds the cause of a wrong answer there, in processes of ``forks`` if given. If these
    arguments are module-level functions, the judge can be pickled.
    """

    effort = Effort(patience=0.5)  # length of a measured timing, and its baselines

    def __init__(
        self, seed_source: Callable[[], int] = _secret_seed, deep: bool = False,
        make_emulator: MakeEmulator | None = None, forks: Callable[[], Forks] | None = None,
    ) -> None:  # fmt: skip
        self._seed, self._deep, self._make_emulator, self._forks = seed_source, deep, make_emulator, forks
        self._buffers, self._pending_count = BufferCache(), PendingCount()
        one_arena()

    @kept_memory()
    @gpu_cache_freed()
    def check(self, problem: Problem, artifact: Artifact, device: Device, say: Say, cancel: Cancel) -> CheckResult:
        """Checks every workload that ``device`` can afford, cheap ones first, until one does not pass.

        A kernel that prints is checked on an emulator instead, and never passes. Raises Cancelled.
        """
        if not uses_printf(artifact):
            return self._check(problem, artifact, device, say, cancel)
        emulator = device if device.kind == "emulator" else self._make_emulator() if self._make_emulator else None
        if emulator is None:
            return CheckResult(Verdict.CONTRACT, f"{ADVICE}; it was not run, because no emulator is available", ())
        recorder = PrintRecorder(emulator)
        return with_printed_output(self._check(problem, artifact, recorder, say, cancel), recorder)

    def _check(self, problem: Problem, artifact: Artifact, device: Device, say: Say, cancel: Cancel) -> CheckResult:
        workloads = [w for w in select_workloads(problem, device) if w.name in artifact.builds]
        if unchecked := _unchecked(problem, artifact, workloads, device):
            return unchecked
        if isinstance(device, HasStopwatch) and "compile" in self.effort.references:
            device.prepare(problem)
        make_emulator = self._make_emulator if device.kind == "cuda" else None
        forks = self._forks() if make_emulator and self._forks else None
        if forks:
            self._pending_count.put(self._counting(problem, artifact, target_gpu(artifact.arch)))
        secret = between(0, 1, torch.Generator().manual_seed(self._seed()))
        plan = [(w, draws(w, turn, len(workloads), secret, problem.any_tf32)) for turn, w in enumerate(workloads)]
        try:
            with (
                gpu_started(device, workloads),
                closing(EmulatorRecheck(problem, artifact, make_emulator, self._seed, say, cancel, forks)) as recheck,
                closing(self._parallel_checks(problem, artifact, plan, device, cancel)) as parallel,
            ):
                found = self._checked(problem, artifact, plan, secret, recheck, parallel, device, say, cancel)
        except BaseException:
            self._pending_count.put(None)
            raise
        if not found.verdict.passed:
            self._pending_count.put(None)
        return found

    def _parallel_checks(
        self, problem: Problem, artifact: Artifact, plan: Plan, device: Device, cancel: Cancel
    ) -> ParallelChecks:  # fmt: skip
        make_emulator = self._make_emulator
        if not self._forks or not make_emulator or not can_fork(device, make_emulator):
            return ParallelChecks((), None, cancel)
        jobs = [
            Job(make_emulator, problem, workload, artifact.builds[workload.name], artifact.arch, names, self._seed())
            for workload, names in for_other_processes(plan)
        ]  # fmt: skip
        return ParallelChecks(jobs, self._forks() if jobs else None, cancel)

    def _checked(
        self, problem: Problem, artifact: Artifact, plan: Plan, secret: float, recheck: EmulatorRecheck,
        parallel: ParallelChecks, device: Device, say: Say, cancel: Cancel,
    ) -> CheckResult:  # fmt: skip
        reference, gpu = Reference(problem), target_gpu(artifact.arch)
        checks: list[WorkloadCheck] = []
        omitted, sampled = Omitted(), dict[str, str]()
        workloads = [workload for workload, _ in plan]

        def busy_cores() -> int:
            return parallel.busy_cores() + recheck.busy_cores()

        def check_here(workload: Workload, names: Sequence[str], omitted: Omitted) -> Iterator[WorkloadCheck]:
            build = artifact.builds[workload.name]
            case = Case(problem, reference, workload, build, device, gpu, cancel, busy_cores=busy_cores)
            return draw_checks(case, names, self._seed, omitted, say)

        for workload, check in checks_in_order(plan, check_here, parallel, omitted):
            checks.append(check)
            if not check.verdict.passed:
                failure = _failure_text(workload, check)
                if cause := recheck.cause(workload.name) if check.verdict in SYMPTOMS else None:
                    checks.append(cause)
                    reason = f"{cause.reason} on {cause.workload}; on the {device.name}: {failure}"
                    return CheckResult(cause.verdict, reason, tuple(checks))
                return CheckResult(check.verdict, failure, tuple(checks))
        notes: list[str] = []
        for check in chain(recheck, self._sanitizer_checks(workloads, artifact, device, say, cancel)):
            checks.append(check)
            notes += [check.reason] if check.verdict.passed and check.reason else []
            if not check.verdict.passed:
                return CheckResult(check.verdict, f"{check.reason} on {check.workload}", tuple(checks))
        for workload in (w for w in problem.workloads if w not in workloads):
            if workload.name not in artifact.builds:
                omitted.not_run.append(f"{workload.name}, for which the candidate was not compiled")
                continue
            share = sampled_share(problem, workload)
            case = Case(problem, reference, workload, artifact.builds[workload.name], device, gpu, cancel, share)
            for check in self._sampled(case, secret, omitted, say):
                checks.append(check)
                if not check.verdict.passed:
                    return CheckResult(check.verdict, _failure_text(workload, check), tuple(checks))
                sampled[workload.name] = case.sample_note
        result = CheckResult(Verdict.INCONCLUSIVE if omitted.not_run else Verdict.PASSED, "", tuple(checks))
        summary = _pass_summary(artifact, result, omitted.fewer_draws, [*sampled.values()], device)
        if omitted.not_run:
            why = f"the {device.name} cannot run {'; '.join(omitted.not_run)}"
            summary = f"no error found ({summary}), but {why}. Next: {_ELSEWHERE}"
        return replace(result, reason="; ".join([summary, *tf32.notes(problem), *notes]))

    def _sampled(self, case: Case, secret: float, omitted: Omitted, say: Say) -> Iterator[WorkloadCheck]:
        """Checks a sample of the blocks of a workload too large for ``case``'s device. If none can be run, or if a
        sample would prove nothing, its name and the reason go to ``omitted.not_run`` and the verdict is
        inconclusive."""
        problem, workload = case.problem, case.workload
        if why := why_no_reference(problem, workload):
            omitted.not_run.append(f"{workload.name} ({why})")
            return
        every = draws(workload, 0, 1, secret, problem.any_tf32)
        names = [name for name in every if name in minimal_draws(workload)]
        for check in draw_checks(case, names, self._seed, Omitted([], omitted.not_run), say):
            if check.verdict is Verdict.INCONCLUSIVE:
                omitted.not_run.append(
                    f"{workload.name} ({excess_size(problem, workload)}), nor a sample of its blocks: {check.reason}"
                )
                return
            yield check

    def _sanitizer_checks(
        self, workloads: Sequence[Workload], artifact: Artifact, device: Device, say: Say, cancel: Cancel
    ) -> Iterator[WorkloadCheck]:
        if self._deep and isinstance(device, Inspects):
            yield from sanitizer_checks(workloads, artifact, device, self._seed(), say, cancel)

    @kept_memory()
    @gpu_cache_freed()
    def time(
        self, problem: Problem, artifact: Artifact, device: Device, gpu: GpuSpec, say: Say, cancel: Cancel,
        incumbent: Artifact | None = None,
    ) -> tuple[Timing | Fault, Profile | None]:  # fmt: skip
        """Time and profile of the main workload on ``device``.

        On a device with a stopwatch: a measured Timing, interleaved with baselines and ``incumbent`` (the artifact to
        beat), and the emulator's counters (None without an emulator). On the emulator: a predicted Timing and its
        profile. In place of the Timing there is a Fault if the plan is invalid (then without a profile), a timed call
        failed or was wrong, or fewer input bytes were loaded than the answer needs. Raises Cancelled.
        """
        workload, build = problem.workload, artifact.builds[problem.workload.name]
        if fault := validate_plan(build, workload.tensors + build.plan.workspace, gpu):
            return fault, None
        say(f"time {workload.name} on {device.name}")
        if isinstance(device, HasStopwatch):
            reference = Reference(problem)
            best = incumbent.builds.get(workload.name) if incumbent else None
            place = ReferenceDevice(device, workload)
            counting = self._pending_count.take(problem, artifact, gpu) or self._counting(problem, artifact, gpu)
            with closing(counting):  # counting uses the CPU while this process mostly waits for the GPU
                inputs = inputs_for(problem, reference, counting.seed)
                required = required_fraction(reference, workload, inputs, self._seed(), place)
                free_gpu_cache()
                job = TimingJob(problem, build, best, inputs, gpu, output_check(problem, reference, place))
                timing = time_interleaved(job, device, device.name, self.effort, self._seed, say, cancel)
                counted = counting.result(say, cancel)
            if counted is not None and (fault := check_inputs_read(workload, required, counted.counters, sampled=True)):
                return fault, counted
            if counting.note and isinstance(timing, Timing):
                timing = replace(timing, notes=(*timing.notes, counting.note))
            return timing, counted
        buffers = self._buffers.take(workload, build, self._seed())
        found = device.time(build, buffers.tensors, buffers.views, gpu, cancel)
        self._buffers.put_back(buffers)
        return found

    def profile(self, problem: Problem, artifact: Artifact, device: Device, say: Say, cancel: Cancel) -> Profile | str:
        """Counters from the emulator or the GPU's profiler, or the reason why there are none. Raises Cancelled."""
        say(f"profile {problem.workload.name} on {device.name}")
        return profile(problem, artifact, device, self._seed(), cancel)

    def timelines(
        self, problem: Problem, artifact: Artifact, device: Device, say: Say, cancel: Cancel
    ) -> tuple[Timeline, ...] | str:
        """What the warps of one block of each launch do, or the reason why that is not known. Raises Cancelled."""
        say(f"record the warps of {problem.workload.name} on {device.name}")
        return timelines(problem, artifact, device, self._seed(), cancel)

    def _counting(self, problem: Problem, artifact: Artifact, gpu: GpuSpec) -> LoadCount:
        forks = self._forks() if self._forks else None
        return LoadCount(problem, artifact, gpu, self._seed(), self._make_emulator, forks)


def _unchecked(
    problem: Problem, artifact: Artifact, workloads: Sequence[Workload], device: Device
) -> CheckResult | None:
    """Result if too few workloads can be checked for a verdict; None if there are enough."""
    left_out = ", ".join(artifact.unserved)
    served = [w.name for w in problem.check_workloads if w.name in artifact.builds]
    telling = [name for name in served if name not in TRIVIAL]
    if workloads and (telling or not left_out):
        return None
    but = f" but {', '.join(served)}, which many wrong kernels pass too," if served else ""
    found = [f"the candidate's constraints() leave out every small workload{but} ({left_out})"] if left_out else []
    if not problem.check_workloads:
        found.append("no small workload could be derived from the reference")
    next_steps = ["serve at least one small workload: some errors show only there"] if left_out else []
    if too_large := [w for w in problem.workloads if w not in workloads]:
        names = ", ".join(w.name for w in too_large)
        found.append(f"the {device.name} cannot afford {names} ({excess_size(problem, too_large[0])})")
        next_steps.append(_ELSEWHERE)
    verdict = Verdict.CONTRACT if left_out else Verdict.UNSUPPORTED
    reason = f"too little is left to check: {'; '.join(found)}. Next: {', or '.join(next_steps)}"
    return CheckResult(verdict, reason, ())


def _failure_text(workload: Workload, check: WorkloadCheck) -> str:
    return f"{check.reason} on {workload.name} {workload.describe()}, {check.distribution} inputs"


def _pass_summary(
    artifact: Artifact, result: CheckResult, fewer: Sequence[str], sampled: Sequence[str], device: Device
) -> str:  # fmt: skip
    ran = {c.workload for c in result.checks}
    text = f"{len(result.checks)} checks on {len(ran)} workloads"
    if fewer:
        text += f"; fewer draws on {', '.join(fewer)}, which cost{'s' if len(fewer) == 1 else ''} more to judge"
    if artifact.unserved:
        text += f"; not served, by its own constraints: {', '.join(artifact.unserved)}"
    if sampled:
        text += f"; {', '.join(sampled)} in each draw: too large for the {device.name} to run whole"
    return text

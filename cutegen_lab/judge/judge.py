"""``StandardJudge``: fresh inputs, float64 answers, poisoned outputs, one verdict."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence

import torch

from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Cancel, Device, Say
from cutegen_lab.core.roofline import GpuSpec, target_gpu
from cutegen_lab.core.stopwatch import TimesInTurns
from cutegen_lab.core.trial import CheckResult, OutputError, Profile, Timing, WorkloadCheck
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.buffers import POISONS, Buffers
from cutegen_lab.judge.correctness import compare
from cutegen_lab.judge.inputs import DISTRIBUTIONS, draw, fill, nudged
from cutegen_lab.judge.plan import validate_plan
from cutegen_lab.judge.select import select_workloads
from cutegen_lab.judge.timed_outputs import answers, inputs_for
from cutegen_lab.judge.timing import Job, time_in_turns
from cutegen_lab.judge.turns import Effort
from cutegen_lab.problems import Reference

_REPEATABLE_BYTES = 1 << 24  # on the emulator, workloads up to here are run a second time over another poison


class StandardJudge:
    """A :class:`~cutegen_lab.core.protocols.Judge`. Seeds are secret until the verdict, then recorded.

    ``seed_source`` gives one 63-bit seed a draw (tests pass a counter).
    """

    effort = Effort()  # how long a measured time is sought, and beside which baselines

    def __init__(self, seed_source: Callable[[], int] = lambda: secrets.randbits(63)) -> None:
        self._seed = seed_source

    def check(self, problem: Problem, artifact: Artifact, device: Device, say: Say, cancel: Cancel) -> CheckResult:
        """Checks every workload ``device`` can afford, cheap ones first; ends at the first that does not pass.

        Raises Cancelled.
        """
        reference = Reference(problem)
        gpu = target_gpu(artifact.arch)
        checks: list[WorkloadCheck] = []
        for workload, distribution in _schedule(problem, device):
            if cancel.is_set():
                raise Cancelled()
            say(f"check {workload.name} ({distribution})")
            case = _Case(problem, reference, workload, artifact.builds[workload.name], device, gpu, cancel)
            started = time.perf_counter()
            check = case.run(distribution, self._seed())
            checks.append(_timed(check, time.perf_counter() - started))
            if not check.verdict.passed:
                where = f"{workload.name} {workload.describe()}, {distribution} inputs"
                return CheckResult(check.verdict, f"{check.reason} on {where}", tuple(checks))
        result = CheckResult(Verdict.PASSED, "", tuple(checks))
        return CheckResult(Verdict.PASSED, _praise(problem, result, device), result.checks)

    def time(
        self, problem: Problem, artifact: Artifact, device: Device, gpu: GpuSpec, say: Say, cancel: Cancel,
        incumbent: Artifact | None = None,
    ) -> tuple[Timing | Fault, Profile | None]:  # fmt: skip
        """Times the main workload on ``device``: predicted by the emulator; measured where there is a stopwatch, in
        turns with baselines and ``incumbent``, the artifact to beat."""
        workload, build = problem.workload, artifact.builds[problem.workload.name]
        if fault := validate_plan(build, workload.tensors + build.plan.workspace, gpu):
            return fault, None
        say(f"time {workload.name} on {device.name}")
        if isinstance(device, TimesInTurns):
            reference = Reference(problem)
            best = incumbent.builds.get(workload.name) if incumbent else None
            inputs = inputs_for(problem, reference, self._seed())
            job = Job(problem, build, best, inputs, gpu, answers(problem, reference))
            return time_in_turns(job, device, device.name, self.effort, self._seed, say, cancel), None
        buffers = Buffers(workload, build, fill(workload, self._seed()), POISONS[0])
        return device.time(build, buffers.tensors, buffers.views, gpu, cancel)


class _Case:
    """One workload of one artifact on one device."""

    def __init__(
        self, problem: Problem, reference: Reference, workload: Workload, build: Build, device: Device, gpu: GpuSpec,
        cancel: Cancel,
    ) -> None:  # fmt: skip
        self.problem, self.reference, self.workload, self.build = problem, reference, workload, build
        self.device, self.gpu, self.cancel = device, gpu, cancel

    def run(self, distribution: str, seed: int) -> WorkloadCheck:
        def verdict(
            verdict: Verdict, reason: str = "", errors: tuple[OutputError, ...] = (), fault: Fault | None = None
        ) -> WorkloadCheck:
            return WorkloadCheck(self.workload.name, distribution, seed, verdict, reason, errors, fault)

        fault = validate_plan(self.build, self.workload.tensors + self.build.plan.workspace, self.gpu)
        if fault:
            return verdict(fault.verdict, str(fault), fault=fault)
        inputs = draw(self.workload, distribution, seed, self.reference.parameters)
        first = Buffers(self.workload, self.build, inputs, POISONS[0])
        # The candidate runs before the reference: nothing it could find in memory is the answer.
        if fault := self._execute(first):
            return verdict(fault.verdict, str(fault), fault=fault)
        if name := first.modified_input():
            return verdict(Verdict.INPUT_MODIFIED, f"the kernel changed its input {name!r}")
        if self._repeatable():
            second = Buffers(self.workload, self.build, inputs, POISONS[1])
            if fault := self._execute(second):
                return verdict(fault.verdict, str(fault), fault=fault)
            if difference := _difference(self.workload, first, second, self.problem.deterministic):
                return verdict(*difference)
        errors = self._errors(inputs, first.outputs, seed)
        for index, error in enumerate(errors):
            if not error.ok:
                # A second poison has already told unwritten elements from NaNs the kernel computed.
                unwritten = 0 if self._repeatable() else int(first.unwritten(index).sum())
                return verdict(*_blame(error, unwritten, self.workload, index), errors)
        return verdict(Verdict.PASSED, errors=errors)

    def _execute(self, buffers: Buffers) -> Fault | None:
        return self.device.execute(self.build, buffers.tensors, buffers.views, self.cancel).fault

    def _repeatable(self) -> bool:
        return self.device.kind == "cuda" or self.workload.compulsory_bytes <= _REPEATABLE_BYTES

    def _errors(
        self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], seed: int
    ) -> tuple[OutputError, ...]:
        exact, own = self.reference.run_float64(inputs), self.reference.run(inputs)
        errors = self._compared(outputs, exact, own, [None] * len(exact))
        if all(error.ok for error in errors):
            return errors
        # Before a kernel is called wrong: how much do the inputs' last bits matter to this problem?
        return self._compared(outputs, exact, own, self.reference.run_float64(nudged(inputs, seed)))

    def _compared(
        self,
        outputs: Sequence[torch.Tensor],
        exact: Sequence[torch.Tensor],
        own: Sequence[torch.Tensor],
        moved: Sequence[torch.Tensor | None],
    ) -> tuple[OutputError, ...]:
        limits, terms = self.problem.tolerances, _terms(self.workload)
        rows = zip(self.workload.outputs, outputs, exact, own, moved, strict=True)
        return tuple(compare(spec, got, want, mine, limits, near, terms) for spec, got, want, mine, near in rows)


def _terms(workload: Workload) -> int:
    """The most terms an output element can sum without saying so: the longest dimension, or all the others."""
    sizes = [(max(t.shape), t.numel) for t in workload.tensors if t.numel and t.shape]
    return max((max(longest, numel // longest) for longest, numel in sizes), default=1)


def _schedule(problem: Problem, device: Device) -> Iterator[tuple[Workload, str]]:
    """Normal inputs everywhere; on a GPU every distribution too; on the emulator the others shared out in turn."""
    others = [name for name in DISTRIBUTIONS if name != "normal"]
    small = {w.name for w in problem.check_workloads}
    turn = 0
    for workload in select_workloads(problem, device):
        yield workload, "normal"
        if device.kind == "cuda":
            yield from ((workload, name) for name in others)
        elif workload.name in small:
            yield workload, others[turn % len(others)]
            turn += 1


def _difference(workload: Workload, first: Buffers, second: Buffers, deterministic: bool) -> tuple[Verdict, str] | None:
    """Two runs over different poison must agree bit for bit, or something stale was read or left unwritten."""
    for index, spec in enumerate(workload.outputs):
        a, b = first.outputs[index], second.outputs[index]
        changed = (_bits(a) != _bits(b)).reshape(-1)
        if not bool(changed.any()):
            continue
        left = int((first.unwritten(index) & second.unwritten(index)).sum())
        if left:
            return Verdict.UNWRITTEN_OUTPUT, f"{left} of {spec.numel} elements of {spec.name!r} were never written"
        if deterministic:
            count = int(changed.sum())
            reason = f"{count} of {spec.numel} elements of {spec.name!r} differ between two runs on the same inputs"
            return Verdict.NON_DETERMINISTIC, reason
    return None


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    widths = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.reshape(-1).view(widths[tensor.element_size()])


def _blame(error: OutputError, unwritten: int, workload: Workload, index: int) -> tuple[Verdict, str]:
    spec = workload.outputs[index]
    if unwritten and spec.dtype.is_float:
        return Verdict.UNWRITTEN_OUTPUT, f"{unwritten} of {spec.numel} elements of {spec.name!r} were never written"
    where = f"{spec.name}[{', '.join(map(str, error.worst_index))}]"
    if not spec.dtype.is_float:
        return (
            Verdict.WRONG_RESULT,
            f"{error.norm:.1%} of {spec.name!r} is wrong; {where} is {error.got:g}, not {error.expected:g}",
        )
    measure = f"error {error.norm:.2e} against float64 (limit {error.limit_norm:.2e}, PyTorch {error.torch_norm:.2e})"
    return Verdict.WRONG_RESULT, f"{measure}; worst at {where}: got {error.got:g}, expected {error.expected:g}"


def _praise(problem: Problem, result: CheckResult, device: Device) -> str:
    ran = {c.workload for c in result.checks}
    skipped = [w.name for w in problem.workloads if w.name not in ran]
    text = f"{len(result.checks)} checks on {len(ran)} workloads"
    if skipped:
        text += f"; {', '.join(skipped)} not run: too large for the {device.name}"
    return text


def _timed(check: WorkloadCheck, seconds: float) -> WorkloadCheck:
    return WorkloadCheck(
        check.workload, check.distribution, check.seed, check.verdict, check.reason, check.errors, check.fault, seconds
    )

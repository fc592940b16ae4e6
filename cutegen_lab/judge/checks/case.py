"""One workload of one artifact on one device: a draw of inputs, one or two runs, one verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Cancel, Device, Execution, LendsMemory, Samples
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.trial import OutputError, WorkloadCheck
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.checks.diagnosis import compare_runs, diagnose, remark
from cutegen_lab.judge.checks.input_sensitivity import check_inputs_read, required_fraction
from cutegen_lab.judge.compare.outputs import OutputComparison
from cutegen_lab.judge.draws.constants import Constants, constants_in_ptx, constants_in_reference
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.draws.locality import local_inputs
from cutegen_lab.judge.draws.names import (
    CONSTANTS,
    EXPONENTS,
    FLOAT_LIMITS,
    FULL_RANGE,
    HIDDEN,
    HIDDEN_ABOVE,
    HIDDEN_ROWS,
    INTEGER_LIMITS,
    INTEGER_LIMITS_BUT_LEAST,
    MOSAIC,
    NOT_FINITE,
    OVERFLOWING,
    PATCHWORK,
    WIDE_RANGE,
    WITH_CONSTANTS,
)
from cutegen_lab.judge.execution.buffers import POISONS, Buffers, random_poison
from cutegen_lab.judge.execution.host_memory import lacks_memory, too_little_memory
from cutegen_lab.judge.execution.placement import Placement, reversed_placement, shuffled_placement
from cutegen_lab.judge.execution.plan import validate_plan
from cutegen_lab.judge.reference_device import ReferenceDevice, torch_threads_for
from cutegen_lab.judge.rounding.formula import run_and_classify
from cutegen_lab.problems import Reference
from cutegen_lab.problems.tensors import alike, moved

REPEATABLE_BYTES = 1 << 24  # largest workload that the emulator runs again with another poison
FAULTS_OF_A_SAMPLE = (  # faults of a sample that may only mean that the other blocks did not run
    Verdict.HANG, Verdict.DEADLOCK, Verdict.OUT_OF_MEMORY, Verdict.UNSUPPORTED, Verdict.UNINITIALISED_READ
)  # fmt: skip
_TIED_DRAWS = ("bits",)  # draws in which many numbers are equal
_LEAST_WRITTEN = 0.8  # executed blocks must write at least this fraction of their share of an output

T = TypeVar("T")
Run = Callable[[], Execution]
"""Runs the candidate once on the device. Raises Cancelled."""
Steps = Generator[Run, Execution, T]
"""Generator that yields each run of the candidate and is sent its Execution."""


@dataclass
class Case:
    """One workload of one artifact on one device. Its runs raise Cancelled."""

    problem: Problem
    """Problem of the workload."""
    reference: Reference
    """Reference in PyTorch."""
    workload: Workload
    """Workload to check."""
    build: Build
    """The candidate's build for it."""
    device: Device
    """Device that runs it."""
    gpu: GpuSpec
    """Target GPU, whose limits the plan must respect."""
    cancel: Cancel
    """Ends the runs when it is set."""
    share: float = 1.0
    """Fraction of the plan's blocks to run, which are chosen at random; below 1 if the device cannot run all."""
    busy_cores: Callable[[], int] = int
    """Number of cores that other processes keep busy now: PyTorch gets the others."""
    executed: Execution = field(default=Execution(None, 0.0))
    """First run of the first draw, for its counters."""

    def __post_init__(self) -> None:
        self._constants: Constants | None = None
        self._local: frozenset[int] | None = None  # inputs whose single elements affect few results
        self._turn: int | None = None  # number of the large input that the first mixed draw changes
        # Fraction of the blocks that the last run executed, and a note about it.
        self._executed_share, self.sample_note = 1.0, ""
        self._place = ReferenceDevice(self.device, self.workload)
        self._lender = self.device if self._place.large and isinstance(self.device, LendsMemory) else None
        self._comparison = OutputComparison(self.reference, self.workload, self.problem.tolerances, self._place)

    @property
    def whole(self) -> bool:
        """Whether all blocks of the grid run, not a sample."""
        return self.share == 1.0

    @property
    def overlaps(self) -> bool:
        """Whether draws may overlap: a GPU runs one while this process compares another on the CPU. Lent memory holds
        one draw at a time."""
        return self.device.kind == "cuda" and self._place.on_cpu and self._lender is None

    def run(self, distribution: str, seed: int, first: bool) -> WorkloadCheck | None:
        """The check of one draw; None if the reference does not accept such inputs.

        ``first``: the workload's first draw, which runs twice with different poison. A draw with many equal values also
        runs twice if all outputs are integers and nothing is rounded (argmax), since threads may race for an index
        among equal values. On a GPU every draw runs twice, with tensors at different addresses.
        """
        check = self.begin(distribution, seed, first)
        while check.next_run is not None:
            check.resume(check.next_run)
        return check.result

    def begin(self, distribution: str, seed: int, first: bool) -> DrawCheck:
        """Starts :meth:`run` and stops before the first run of the candidate."""
        passed = WorkloadCheck(self.workload.name, distribution, seed, Verdict.PASSED)
        return DrawCheck(self, passed, first)

    def steps(self, passed: WorkloadCheck, first: bool) -> Steps[WorkloadCheck | None]:
        """The check of one draw. ``passed``: its workload, distribution and seed, with the verdict if no error is
        found."""
        if fault := validate_plan(self.build, self.workload.tensors + self.build.plan.workspace, self.gpu):
            return _failed_by(passed, fault)
        inputs = self._draw_inputs(passed)
        if self._floats_overflow(passed.distribution, inputs):
            return None
        if not first and self._may_be_rejected(passed.distribution):
            outputs = self._torch_result(inputs)
            for smaller in (*([INTEGER_LIMITS_BUT_LEAST] if passed.distribution == INTEGER_LIMITS else []), WIDE_RANGE):
                if outputs is None or not self._integers_overflow(passed.distribution, inputs, outputs):
                    break
                passed = replace(passed, distribution=smaller)
                inputs = self._draw_inputs(passed)
                outputs = self._torch_result(inputs)
            if outputs is None or (passed.distribution in (HIDDEN, HIDDEN_ABOVE) and self._is_nan(passed.distribution)):
                return None
            if passed.distribution == HIDDEN_ROWS and not self._decided(inputs, outputs):
                return None
        ties = passed.distribution in _TIED_DRAWS and self._chooses(inputs)
        buffers = self._buffers(inputs, passed.seed, first or ties)
        # The candidate runs before the reference, so that the answer is not in memory yet.
        ran: list[Buffers] = []
        for number, make in enumerate(buffers):
            ran.append(make())
            if wrong := (yield from self._execute(passed, ran[-1], counting=first and number == 0)):
                return wrong
        if len(ran) == 2 and (found := compare_runs(self.workload, ran[0], ran[1], self.problem.deterministic)):
            return replace(passed, verdict=found[0], reason=found[1])
        written = self._written(ran[0]) if self._executed_share < 1.0 else None
        if written is not None and (why := self._too_little(written)):
            return replace(passed, verdict=Verdict.INCONCLUSIVE, reason=why)
        errors = self._comparison.errors(inputs, ran[0].outputs, passed, written)
        for index, error in enumerate(errors):
            if not error.ok:
                # If the draw ran with two poisons, compare_runs() has already found unwritten elements.
                unwritten = 0 if len(ran) == 2 or written else int(ran[0].unwritten(index).sum())
                verdict, reason = diagnose(error, unwritten, self.workload, index)
                if verdict is Verdict.WRONG_RESULT:
                    reason += self._remark(inputs, index, error, None if written else ran[0].outputs[index])
                return replace(passed, verdict=verdict, reason=reason, errors=errors)
        if first and self.whole and (fault := self._unread_input(inputs, passed.seed)):
            return replace(_failed_by(passed, fault), errors=errors)
        return replace(passed, errors=errors)

    def _remark(self, inputs: Sequence[torch.Tensor], index: int, error: OutputError, got: torch.Tensor | None) -> str:
        """:func:`remark` on output ``index`` with values ``got``, computed on the device where references run."""

        def there(where: str) -> str:
            given, mine = self._at(where, inputs), None if got is None else got.to(where)
            return remark(self.reference, given, index, error, self.workload, mine)

        return self._place.run(there)

    def _at(self, where: str, inputs: Sequence[torch.Tensor], workload: Workload | None = None) -> list[torch.Tensor]:
        specs = (workload or self.workload).inputs
        return [moved(t, spec, where) for t, spec in zip(inputs, specs, strict=True)]

    def _flops(self) -> int:
        """FLOPs of the matrix products, estimated from the main workload's (they grow as bytes ** 1.5)."""
        larger = self.workload.nbytes / max(self.problem.workload.nbytes, 1)
        return int(self.problem.flops * larger**1.5)

    def _unread_input(self, inputs: Sequence[torch.Tensor], seed: int) -> Fault | None:
        """Fault if fewer input bytes were loaded than the answer needs; None if the device does not count loads."""
        counters = self.executed.counters
        if not counters:
            return None
        required = required_fraction(self.reference, self.workload, inputs, seed, self._place)
        return check_inputs_read(self.workload, required, counters)

    def _written(self, buffers: Buffers) -> list[torch.Tensor]:
        """Elements of each output that the executed blocks wrote (flat booleans)."""
        return [~buffers.unwritten(index) for index in range(len(self.workload.outputs))]

    def _too_little(self, written: Sequence[torch.Tensor]) -> str:
        """Reason for an inconclusive verdict if the executed blocks wrote much less than their share of an output: the
        others may write more, or all may stop too early. "" otherwise."""
        for spec, some in zip(self.workload.outputs, written, strict=True):
            if (count := int(some.sum())) < _LEAST_WRITTEN * self._executed_share * spec.numel:
                share = f"{self._executed_share:.1%} of the blocks"
                return f"{share} wrote {count:,} of the {spec.numel:,} elements of {spec.name!r}"
        return ""

    def _buffers(self, inputs: Sequence[torch.Tensor], seed: int, first: bool) -> list[Callable[[], Buffers]]:
        """Buffers of each run of one draw, allocated when the run starts."""
        generator = torch.Generator().manual_seed(seed ^ 0x5EED)
        poisons = POISONS if first and self.whole else (random_poison(generator), POISONS[0])
        places: list[Placement | None]
        if self.device.kind == "cuda":
            places = self._placements(len(inputs), first, generator)
        elif first and self.whole and self.workload.nbytes <= REPEATABLE_BYTES:
            places = [None, None]  # the emulator itself varies addresses and checks each tensor's bounds
        else:
            places = [None]
        guards = int(torch.randint(1 << 62, (), generator=generator))

        def at(poison: int, place: Placement | None) -> Callable[[], Buffers]:
            return lambda: Buffers(self.workload, self.build, inputs, poison, place, guards, self._lent)

        return [at(poison, place) for poison, place in zip(poisons, places, strict=False)]

    def _lent(self, sizes: Sequence[int]) -> list[torch.Tensor] | None:
        lent = self._lender.lend(sizes) if self._lender and self.whole else None
        return None if lent is None else [torch.as_tensor(memory) for memory in lent]

    def _placements(self, inputs: int, first: bool, generator: torch.Generator) -> list[Placement | None]:
        """Placements of the two runs on a GPU, which, unlike the emulator, does not vary addresses itself."""
        count = len(self.workload.tensors) + len(self.build.plan.workspace)
        if first:
            return [None, reversed_placement(count, generator)]
        return [shuffled_placement(count, inputs, generator), shuffled_placement(count, inputs, generator)]

    def _execute(self, passed: WorkloadCheck, buffers: Buffers, counting: bool) -> Steps[WorkloadCheck | None]:
        """The failed check; None if the run had no fault and changed neither inputs nor guards."""
        done = yield partial(self._run_on_device, buffers, counting)
        if counting:
            self.executed = done
        if done.fault:
            return _failed_by(passed, done.fault)
        if name := buffers.modified_input():
            return replace(passed, verdict=Verdict.INPUT_MODIFIED, reason=f"the kernel changed its input {name!r}")
        if name := buffers.broken_guard():
            reason = f"the kernel wrote next to {name!r}: the bytes around it changed"
            return replace(passed, verdict=Verdict.OUT_OF_BOUNDS, reason=reason)
        buffers.keep_outputs()
        return None

    def _run_on_device(self, buffers: Buffers, counting: bool) -> Execution:
        if buffers.lent and self._lender:
            return self._lender.execute_lent(buffers.build, self.cancel)
        build, tensors, views = buffers.build, buffers.tensors, buffers.views
        if self.whole:
            return self.device.execute(build, tensors, views, self.cancel, counting, self._flops())
        if not isinstance(self.device, Samples):
            return Execution(Fault(Verdict.INCONCLUSIVE, f"the {self.device.name} runs all blocks or none"), 0.0)
        ran = self.device.sample(build, tensors, views, self.cancel, self.share, self._flops())
        if isinstance(ran, str):
            return Execution(Fault(Verdict.INCONCLUSIVE, ran), 0.0)
        counted, blocks = (ran.counters.get(name, 1.0) for name in ("blocks_counted", "blocks"))
        self._executed_share = counted / max(blocks, 1.0)
        self.sample_note = f"{counted:,.0f} of {blocks:,.0f} blocks of {self.workload.name}"
        if ran.fault and ran.fault.verdict in FAULTS_OF_A_SAMPLE:
            return replace(ran, fault=replace(ran.fault, verdict=Verdict.INCONCLUSIVE))
        return ran

    def _may_be_rejected(self, distribution: str) -> bool:
        """Whether the reference may reject such inputs or not define their result: they contain non-finite values, or
        integers, which may be indices or divisors."""
        return distribution in (*NOT_FINITE, HIDDEN_ROWS) or any(
            not spec.dtype.is_float for spec in self.workload.inputs
        )

    def _integers_overflow(
        self, distribution: str, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
    ) -> bool:
        """Whether computing with integers at the limits of their type overflows."""
        whole = distribution == PATCHWORK and not any(spec.dtype.is_float for spec in self.workload.inputs)
        if not whole and distribution not in (*OVERFLOWING, INTEGER_LIMITS_BUT_LEAST, CONSTANTS):
            return False
        return self._overflows(distribution, inputs, outputs)

    def _floats_overflow(self, distribution: str, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether the inputs are so large that correct formulas overflow."""
        if distribution not in (EXPONENTS, FLOAT_LIMITS):
            return False
        _, kind = run_and_classify(lambda: self._torch_result(inputs) or ())
        return not (kind.elementwise if distribution == EXPONENTS else kind.rounds_nothing)

    def _decided(self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> bool:
        """Whether the formula defines the result of a row of −∞: a number, or −∞ if it distinguishes infinities
        (logsumexp). False if a matrix product has an infinite factor: split-fp16 products give NaN for it, PyTorch's
        attention zeros."""
        numbers = [out.double() for out in outputs]  # isfinite() does not take 8-bit floats
        if any(bool(out.isnan().any()) for out in numbers):
            return False
        _, kind = run_and_classify(lambda: self._torch_result(inputs) or ())
        if kind.infinite_factors:
            return False
        return kind.handles_infinity or all(bool(out.isfinite().all()) for out in numbers)

    def _chooses(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether all outputs are integers and nothing is rounded, so that two runs must agree."""
        if any(spec.dtype.is_float for spec in self.workload.outputs):
            return False
        return run_and_classify(lambda: self._torch_result(inputs) or ())[1].rounds_nothing

    def _torch_result(
        self, inputs: Sequence[torch.Tensor], workload: Workload | None = None
    ) -> tuple[torch.Tensor, ...] | None:
        """PyTorch's result, of another ``workload`` if given; None if it rejects these inputs."""
        try:
            return self._place.run(lambda where: self.reference.run(self._at(where, inputs, workload)))
        except (IndexError, RuntimeError, ValueError, AssertionError, ZeroDivisionError):
            return None

    def _overflows(self, distribution: str, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> bool:
        """Whether the reference's result changes if it is computed in int64: abs() and other operators are undefined at
        a type's limits."""
        if distribution == FULL_RANGE:
            return False
        narrow = (torch.int32, torch.int16, torch.int8, torch.uint8)
        wide = self._torch_result([t.long() if t.dtype in narrow else t for t in inputs])
        if wide is None or all(alike(a.double(), b.double()) for a, b in zip(outputs, wide, strict=True)):
            return False
        return not run_and_classify(lambda: self._torch_result(inputs) or ())[1].wraps

    def _draw_inputs(self, check: WorkloadCheck) -> list[torch.Tensor]:
        workload, parameters = self.workload, self.reference.parameters
        if check.distribution in WITH_CONSTANTS and self._constants is None:
            least = min((workload, *self.problem.check_workloads), key=lambda w: w.nbytes)
            cheap = workload if workload.nbytes <= REPEATABLE_BYTES else least
            usual = self._place.run(partial(draw, cheap, "normal", check.seed, parameters))
            by_reference = constants_in_reference(lambda: self._torch_result(usual, cheap))
            self._constants = Constants(by_reference, constants_in_ptx(self.build.ptx))
        if check.distribution == MOSAIC and self._local is None:
            self._local = self._local_inputs(check.seed)
        if self._turn is None:
            self._turn = check.seed
        # An expensive workload has few draws; they change its large inputs in turn.
        turn = self._turn + (check.distribution == MOSAIC)
        local = self._local or frozenset()
        drawn = partial(
            draw, workload, check.distribution, check.seed, parameters, named=self._constants, turn=turn, local=local
        )
        return self._place.run(drawn)

    def _is_nan(self, distribution: str) -> bool:
        """Whether most results of ``distribution`` are NaN; tested with seed 0, so that the answer is the same in every
        trial."""
        workload = self._largest_cheap() or self.workload
        outputs = self._torch_result(
            self._place.run(partial(draw, workload, distribution, 0, self.reference.parameters)), workload
        )
        return outputs is not None and _mostly_nan(outputs)

    def _largest_cheap(self) -> Workload | None:
        """The largest workload of at most ``REPEATABLE_BYTES``, this one or a small one; None if there is none."""
        every = (self.workload, *self.problem.check_workloads)
        cheap = [w for w in every if w.nbytes <= REPEATABLE_BYTES]
        return max(cheap, key=lambda w: w.nbytes, default=None)

    def _local_inputs(self, seed: int) -> frozenset[int]:
        """:func:`local_inputs` of the largest workload that is cheap to run; none if there is none."""
        if (workload := self._largest_cheap()) is None:
            return frozenset()
        usual = partial(draw, workload, "normal", seed, self.reference.parameters)
        return local_inputs(lambda given: self._torch_result(given, workload), workload, lambda: self._place.run(usual))


class DrawCheck:
    """The check of one draw. It pauses where the candidate must run (``next_run``) and continues with :meth:`resume`.
    Once ``next_run`` is None, ``result`` is the check, or None if the reference does not accept these inputs."""

    def __init__(self, case: Case, passed: WorkloadCheck, first: bool) -> None:
        self._case, self._passed, self._started = case, passed, time.perf_counter()
        self._steps = case.steps(passed, first)
        self.next_run: Run | None = None
        self.result: WorkloadCheck | None = None
        self.resume(None)

    def resume(self, run: Run | None) -> None:
        """Calls ``run`` and continues with the Execution that it returns, until the next run or the end. ``run``:
        ``next_run``, or a function that waits for its result; None at the start."""
        case, self.next_run = self._case, None
        try:
            ran = run and run()
            with torch_threads_for(case.workload, case.busy_cores()):
                self.next_run = next(self._steps) if ran is None else self._steps.send(ran)
        except StopIteration as end:
            self._end(end.value)
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
            verdict = Verdict.OUT_OF_MEMORY if case.whole else Verdict.INCONCLUSIVE
            self._end(replace(self._passed, verdict=verdict, reason=too_little_memory(case.workload, case.build)))

    def _end(self, check: WorkloadCheck | None) -> None:
        self.result = check and replace(check, seconds=time.perf_counter() - self._started)


def _mostly_nan(outputs: Sequence[torch.Tensor]) -> bool:
    return any(out.is_floating_point() and 2 * int(out.isnan().sum()) > out.numel() for out in outputs)


def _failed_by(passed: WorkloadCheck, fault: Fault) -> WorkloadCheck:
    return replace(passed, verdict=fault.verdict, reason=str(fault), fault=fault)

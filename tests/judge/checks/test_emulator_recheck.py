"""What a GPU cannot see is seen on the emulator; what the emulator cannot execute is a note."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing

import pytest
import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.forks import Forks
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.trial import CheckResult
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge import StandardJudge
from cutegen_lab.judge.checks.emulator_recheck import EmulatorRecheck
from cutegen_lab.problems import read_text
from tests.judge.torch_device import Kernel, TorchDevice, artifact_for

RELU = read_text("def reference(x):\n    return x.relu()\n", inputs_text="x: f32[16,300]")


def right(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x.relu())


def faults(verdict: Verdict, message: str) -> Kernel:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> Fault:
        return Fault(verdict, message, line=7)

    return kernel


class Reads(TorchDevice):
    """Finds something in the text of the problem's own workload."""

    def examine(self, build: Build, tensors: Sequence[TensorSpec]) -> Fault | None:
        wrong = tensors[: len(RELU.workload.tensors)] == RELU.workload.tensors
        return Fault(Verdict.CONTRACT, "a branch depends on an address") if wrong else None


def judged(on_gpu: Kernel, on_emulator: Kernel) -> tuple[CheckResult, TorchDevice]:
    gpu, emulator, seeds = TorchDevice(on_gpu, "cuda"), TorchDevice(on_emulator), itertools.count(1)
    emulator.name = "emulator"
    judge = StandardJudge(lambda: next(seeds), make_emulator=lambda: emulator)
    return judge.check(RELU, artifact_for(RELU, gpu), gpu, lambda line: None, threading.Event()), emulator


def test_a_read_that_happens_to_work_is_found_on_the_emulator() -> None:
    result, _ = judged(right, faults(Verdict.OUT_OF_BOUNDS, "4 bytes past the end of x"))
    assert result.verdict is Verdict.OUT_OF_BOUNDS
    assert "4 bytes past the end of x" in result.reason and "found on the emulator" in result.reason
    assert result.checks[-1].fault is not None and result.checks[-1].distribution == "normal on emulator"


def out_of_bounds() -> TorchDevice:
    emulator = TorchDevice(faults(Verdict.OUT_OF_BOUNDS, f"4 bytes past the end of x in {os.getpid()}"))
    emulator.name = "emulator"
    return emulator


def ends() -> TorchDevice:
    os._exit(1)


def looks_for_ever() -> TorchDevice:
    time.sleep(3600)
    raise AssertionError


@pytest.mark.parametrize("make_emulator", [out_of_bounds, ends, looks_for_ever])
def test_with_processes_to_look_in_it_looks_beside_the_gpu(make_emulator: Callable[[], TorchDevice]) -> None:
    with closing(Forks((__name__,))) as forks:
        judge = StandardJudge(make_emulator=make_emulator, forks=lambda: forks)
        for on_gpu in (right, wrong, faults(Verdict.OUT_OF_BOUNDS, "by the GPU itself")):
            gpu, cancel = TorchDevice(on_gpu, "cuda"), threading.Event()
            timer = threading.Timer(0.5, cancel.set)
            if make_emulator is looks_for_ever:
                timer.start()
            try:
                result = judge.check(RELU, artifact_for(RELU, gpu), gpu, lambda line: None, cancel)
            except Cancelled:
                assert make_emulator is looks_for_ever
                continue
            finally:
                timer.cancel()
            if on_gpu not in (right, wrong):
                assert result.reason.startswith("by the GPU itself"), "nothing more is waited for"
            elif make_emulator is ends:
                told = result.verdict is (Verdict.PASSED if on_gpu is right else Verdict.WRONG_RESULT)
                assert told and (on_gpu is wrong or "its process ended" in result.reason)
            else:
                assert make_emulator is out_of_bounds and result.verdict is Verdict.OUT_OF_BOUNDS
                assert str(os.getpid()) not in result.reason and "found on the emulator" in result.reason


def test_a_wrong_answer_waits_for_no_look_at_later_workloads() -> None:
    first, second = RELU.check_workloads[:2]

    def faults_on_the_second(x: torch.Tensor, out: torch.Tensor) -> Fault | None:
        return Fault(Verdict.OUT_OF_BOUNDS, "past the end") if x.shape == second.inputs[0].shape else right(x, out)

    gpu, seeds, cancel = TorchDevice(right, "cuda"), itertools.count(1), threading.Event()
    emulator = TorchDevice(faults_on_the_second)
    artifact = artifact_for(RELU, gpu)
    with closing(
        EmulatorRecheck(RELU, artifact, lambda: emulator, lambda: next(seeds), lambda line: None, cancel, None)
    ) as looks:
        assert looks.cause(first.name) is None
        assert (found := looks.cause(second.name)) and found.verdict is Verdict.OUT_OF_BOUNDS


def test_what_the_emulator_cannot_execute_is_a_note() -> None:
    for verdict in (Verdict.UNSUPPORTED, Verdict.HANG):
        result, emulator = judged(right, faults(verdict, "wgmma is not emulated"))
        assert result.verdict is Verdict.PASSED, result.reason
        assert "could not check" in result.reason and "wgmma is not emulated" in result.reason
        assert len(emulator.addresses) == len(RELU.check_workloads)  # one try a workload


def test_both_look_at_a_kernel_that_passes() -> None:
    result, emulator = judged(right, right)
    assert result.verdict is Verdict.PASSED
    assert len(emulator.addresses) == 3 * len(RELU.check_workloads)  # normal twice, bits once
    assert sum(c.distribution.endswith("emulator") for c in result.checks) == 2 * len(RELU.check_workloads)


def wrong(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x)


def test_a_wrong_answer_keeps_its_verdict_where_the_emulator_finds_no_cause() -> None:
    for on_emulator in (right, wrong, faults(Verdict.UNSUPPORTED, "wgmma is not emulated")):
        result, _ = judged(wrong, on_emulator)
        assert result.verdict is Verdict.WRONG_RESULT and "emulator" not in result.reason


def test_the_cause_of_a_wrong_answer_is_the_verdict_with_the_symptom_beside_it() -> None:
    result, _ = judged(wrong, faults(Verdict.OUT_OF_BOUNDS, "4 bytes past the end of x"))
    assert result.verdict is Verdict.OUT_OF_BOUNDS
    assert "4 bytes past the end of x" in result.reason and "; on the torch: error" in result.reason
    assert [c.verdict for c in result.checks[-2:]] == [Verdict.WRONG_RESULT, Verdict.OUT_OF_BOUNDS]


def test_what_is_wrong_as_it_is_written_is_found_in_every_workload() -> None:
    gpu, emulator, seeds = TorchDevice(right, "cuda"), Reads(right), itertools.count(1)
    judge = StandardJudge(lambda: next(seeds), make_emulator=lambda: emulator)
    result = judge.check(RELU, artifact_for(RELU, gpu), gpu, lambda line: None, threading.Event())
    assert result.verdict is Verdict.CONTRACT and "a branch depends on an address" in result.reason
    assert result.checks[-1].workload == RELU.workload.name


class ReadsNothing(TorchDevice):
    def examine(self, build: Build, tensors: Sequence[TensorSpec]) -> Fault | None:
        return Fault(Verdict.UNSUPPORTED, "fns is not emulated")


class Ends(TorchDevice):
    def examine(self, build: Build, tensors: Sequence[TensorSpec]) -> Fault | None:
        os._exit(1)


def reader_that_ends() -> TorchDevice:
    return Ends(right)


def test_kernels_that_nobody_could_read_are_told() -> None:
    gpu = TorchDevice(right, "cuda")
    judge = StandardJudge(make_emulator=lambda: ReadsNothing(right))
    result = judge.check(RELU, artifact_for(RELU, gpu), gpu, lambda line: None, threading.Event())
    assert result.verdict is Verdict.PASSED
    assert result.reason.count("fns is not emulated") == 1 and "could not read the kernels of main" in result.reason
    with closing(Forks((__name__,))) as forks:
        judge = StandardJudge(make_emulator=reader_that_ends, forks=lambda: forks)
        result = judge.check(RELU, artifact_for(RELU, gpu), gpu, lambda line: None, threading.Event())
    assert result.verdict is Verdict.PASSED and "could not read the kernels: its process ended" in result.reason


def test_the_emulator_is_not_asked_twice_about_itself() -> None:
    device, other = TorchDevice(right), TorchDevice(right)
    judge = StandardJudge(make_emulator=lambda: other)
    result = judge.check(RELU, artifact_for(RELU, device), device, lambda line: None, threading.Event())
    assert result.verdict is Verdict.PASSED and not other.addresses

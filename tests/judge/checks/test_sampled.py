"""A workload too large for the emulator: some blocks are run and compared, or the verdict is not *passed*."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.protocols import Cancel, Execution
from cutegen_lab.core.trial import CheckResult
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge import StandardJudge, workload_choice
from cutegen_lab.judge.checks.case import FAULTS_OF_A_SAMPLE
from cutegen_lab.problems import read_text
from cutegen_lab.templates.recognise import template_for
from tests.harness.checking import Compiler, built
from tests.judge.torch_device import Kernel, TorchDevice, artifact_for

ROWS = 512
SOME = r"[\d,]+ of [\d,]+ blocks of main in each draw"
RELU = read_text("def reference(x):\n    return x.relu()\n", inputs_text=f"x: f32[{ROWS},512]")
LAST = read_text("def reference(x):\n    return x.argmax(-1), x.amax(-1)\n", inputs_text=f"x: f32[{ROWS},512]")


@pytest.fixture(autouse=True)
def small_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_choice, "EMULATOR_BYTES", 1 << 18)


class Sampling(TorchDevice):
    """Leaves a quarter of each output as it was. ``alone``: why no block can be run by itself."""

    alone = ""

    def sample(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        share: float, flops: int = 0,
    ) -> Execution | str:  # fmt: skip
        if self.alone:
            return self.alone
        assert 0 < share < 1
        before = [bytes(buffer) for buffer in buffers]
        ran = replace(self.execute(build, tensors, buffers, cancel), counters={"blocks": 4.0, "blocks_counted": 3.0})
        for buffer, old in list(zip(buffers, before, strict=True))[1:]:
            quarter = len(old) // 32 * 8
            buffer[quarter : 2 * quarter] = old[quarter : 2 * quarter]
        return ran


def judged(kernel: Kernel, problem: Problem = RELU, alone: str = "") -> CheckResult:
    device, seeds = Sampling(kernel), itertools.count(1)
    device.alone = alone
    judge = StandardJudge(lambda: next(seeds))
    return judge.check(problem, artifact_for(problem, device), device, lambda line: None, threading.Event())


def relu(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x.relu())


def test_some_blocks_are_compared() -> None:
    result = judged(relu)
    assert result.verdict is Verdict.PASSED, result.reason
    assert re.search(SOME, result.reason)
    drawn = [check.distribution for check in result.checks if check.workload == "main"]
    assert drawn == ["normal", "patchwork", "mosaic"], "every kind of number is among them"


def test_integers_are_compared_too() -> None:
    def kernel(x: torch.Tensor, index: torch.Tensor, value: torch.Tensor) -> None:
        index.copy_(x.argmax(-1))
        value.copy_(x.amax(-1))

    def off(x: torch.Tensor, index: torch.Tensor, value: torch.Tensor) -> None:
        kernel(x, index, value)
        if len(x) == ROWS:
            index[-1] += 1

    assert judged(kernel, LAST).verdict is Verdict.PASSED
    assert judged(off, LAST).verdict is Verdict.WRONG_RESULT


def test_what_is_wrong_at_the_real_size_alone_is_refused() -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(x.relu())
        if len(x) == ROWS:
            out[-1, -1] += 1  # one element of a million

    result = judged(kernel)
    assert result.verdict is Verdict.WRONG_RESULT and "main" in result.reason


@pytest.mark.parametrize("rows", [0, 150])
def test_blocks_that_write_too_little_prove_nothing(rows: int) -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        few = rows if len(x) == ROWS else len(x)
        relu(x[:few], out[:few])

    result = judged(kernel)
    assert result.verdict is Verdict.INCONCLUSIVE and "75.0% of the blocks wrote" in result.reason


def test_where_all_blocks_ran_all_is_written() -> None:
    """The device may find that the sample is the whole of a small grid."""

    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        relu(x[: len(x) - (len(x) == ROWS)], out[: len(x) - (len(x) == ROWS)])

    class Whole(Sampling):
        def sample(self, *arguments: Any, **named: Any) -> Execution | str:
            return self.execute(*arguments[:4])

    device, seeds = Whole(kernel), itertools.count(1)
    judge = StandardJudge(lambda: next(seeds))
    result = judge.check(RELU, artifact_for(RELU, device), device, lambda line: None, threading.Event())
    assert result.verdict in (Verdict.UNWRITTEN_OUTPUT, Verdict.WRONG_RESULT), result.reason


def test_results_that_look_unwritten_are_compared() -> None:
    signs = read_text("def reference(x):\n    return torch.where(x > 100, 1, -1)\n", inputs_text=f"x: i32[{ROWS},512]")

    def right(x: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(torch.where(x > 100, 1, -1))

    def off(x: torch.Tensor, out: torch.Tensor) -> None:
        right(x, out)
        if len(x) == ROWS:
            out[-1, :300] = -2

    assert judged(right, signs).verdict is Verdict.PASSED
    assert judged(off, signs).verdict is Verdict.WRONG_RESULT


def test_a_workload_without_a_build_is_not_forgotten() -> None:
    device = Sampling(relu)
    artifact = artifact_for(RELU, device)
    builds = {name: build for name, build in artifact.builds.items() if name != "main"}
    result = StandardJudge().check(RELU, replace(artifact, builds=builds), device, print, threading.Event())
    assert result.verdict is Verdict.INCONCLUSIVE and "main" in result.reason


@pytest.mark.parametrize("verdict", FAULTS_OF_A_SAMPLE)
def test_blocks_that_wait_for_others_prove_nothing(verdict: Verdict) -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> Fault | None:
        relu(x, out)
        return Fault(verdict, "it waits") if len(x) == ROWS else None

    result = judged(kernel)
    assert result.verdict is Verdict.INCONCLUSIVE and "it waits" in result.reason


def test_a_fault_of_a_block_is_the_kernels() -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> Fault | None:
        relu(x, out)
        return Fault(Verdict.OUT_OF_BOUNDS, "4 bytes past the end of x") if len(x) == ROWS else None

    assert judged(kernel).verdict is Verdict.OUT_OF_BOUNDS


def test_where_nothing_of_main_ran_the_verdict_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    result = judged(relu, alone="it takes 2 launches")
    assert result.verdict is Verdict.INCONCLUSIVE and not result.verdict.passed
    assert "it takes 2 launches" in result.reason and "judge it on a GPU, or declare smaller inputs" in result.reason
    assert {check.verdict for check in result.checks} == {Verdict.PASSED}
    monkeypatch.setattr(workload_choice, "MEMORY_FACTOR", 1 << 30)
    result = judged(relu)
    assert result.verdict is Verdict.INCONCLUSIVE and "GiB of memory" in result.reason


def on_the_emulator(compiler: Compiler, problem: Problem, text: str = "") -> CheckResult:
    """What the judge says of ``text``, or of the template's."""
    problem = replace(problem, check_workloads=problem.check_workloads[1:2])
    if not text:
        template = template_for(problem, "sm_90a")
        text = template.write(template.default_config())
    artifact: Artifact = built(compiler, text, (*problem.check_workloads, *problem.workloads))
    return StandardJudge().check(problem, artifact, EmulatorDevice(), lambda line: None, threading.Event())


def test_on_the_emulator(compiler: Compiler) -> None:
    result = on_the_emulator(compiler, RELU)
    assert result.verdict is Verdict.PASSED and re.search(SOME, result.reason), result.reason
    product = read_text("def reference(a, b):\n    return a @ b\n", inputs_text="a: bf16[512,256], b: bf16[256,512]")
    result = on_the_emulator(compiler, product)
    assert result.verdict is Verdict.PASSED and re.search(SOME, result.reason), result.reason


def test_several_launches_on_the_emulator(compiler: Compiler) -> None:
    total = read_text("def reference(x):\n    return x.sum()\n", inputs_text=f"x: f32[{ROWS},512]")
    result = on_the_emulator(compiler, total)
    assert result.verdict is Verdict.INCONCLUSIVE and "launches" in result.reason, result.reason


LOOKS_BESIDE = """
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def relu_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    rows, columns = mX.shape
    for c in range(tidx, columns, 128):
        value = cutlass.max(mX[row, c], cutlass.Float32(0.0))
        if cutlass.const_expr(rows == ROWS):
            beside = mY[(row + rows // 2) % rows, c]
            if beside > -1e30:  # somebody writes there: no sample
                value = value * 2
        mY[row, c] = value


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    relu_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[128, 1, 1], stream=stream)
""".replace("ROWS", str(ROWS))


def test_a_kernel_that_looks_for_what_other_blocks_wrote_is_no_pass(compiler: Compiler) -> None:
    result = on_the_emulator(compiler, RELU, LOOKS_BESIDE)
    assert result.verdict is Verdict.INCONCLUSIVE and "which nothing has written" in result.reason, result.reason

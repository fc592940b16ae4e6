"""What each draw and each placement is there to catch, and what none of them may reject."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Literal

import pytest
import torch
import torch.nn.functional as F

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.protocols import Cancel, Execution
from cutegen_lab.core.trial import CheckResult
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge import StandardJudge
from cutegen_lab.problems import read_text
from tests.judge.honest import _erf_of_five_terms
from tests.judge.torch_device import Kernel, TorchDevice, artifact_for


def problem(expression: str, inputs: str) -> Problem:
    names = ", ".join(part.split(":")[0].strip() for part in inputs.split("], "))
    return read_text(f"def reference({names}):\n    return {expression}\n", inputs_text=inputs)


def judged(task: Problem, kernel: Kernel, kind: Literal["cuda", "emulator"] = "emulator", seed: int = 1) -> CheckResult:
    device, seeds = TorchDevice(kernel, kind), itertools.count(seed)
    judge = StandardJudge(lambda: next(seeds))
    return judge.check(task, artifact_for(task, device), device, lambda line: None, threading.Event())


def writes(function: Callable[..., torch.Tensor]) -> Kernel:
    def kernel(*tensors: torch.Tensor) -> None:
        tensors[-1].copy_(function(*tensors[:-1]))

    return kernel


RELU = problem("torch.relu(x)", "x: f32[16,300]")
SUM = problem("x.sum(-1)", "x: f32[16,3000]")
INTEGER_SUM = problem("x.sum(-1)", "x: i32[16,300]")
SOFTMAX = problem("torch.softmax(x, -1)", "x: bf16[64,512]")


def test_every_workload_gets_ten_draws() -> None:
    result = judged(SOFTMAX, writes(lambda x: torch.softmax(x.float(), -1)))
    assert result.verdict is Verdict.PASSED, result.reason
    for workload in {c.workload for c in result.checks}:
        assert len({c.distribution for c in result.checks if c.workload == workload}) >= 10
    assert {"nan", "infinity", "bits", "zeros"} <= {c.distribution for c in result.checks}


def test_a_maximum_that_swallows_nan() -> None:
    assert judged(RELU, writes(torch.relu)).verdict is Verdict.PASSED
    swallowing = judged(RELU, writes(lambda x: x.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf).relu()))
    assert swallowing.verdict is Verdict.WRONG_RESULT and "nan inputs" in swallowing.reason


def test_clamped_infinities() -> None:
    result = judged(RELU, writes(lambda x: x.clamp(0, 3e38)))
    assert result.verdict is Verdict.WRONG_RESULT and "got 3e+38, expected inf" in result.reason


def test_infinity_minus_infinity_may_be_nan_where_pytorch_has_a_formula_of_its_own() -> None:
    task = problem("torch.logaddexp(x, y)", "x: f32[16,300], y: f32[16,300]")

    def textbook(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        m = torch.maximum(x, y)
        return m + ((x - m).exp() + (y - m).exp()).log()

    assert judged(task, writes(textbook)).verdict is Verdict.PASSED


def test_integers_summed_in_float32() -> None:
    assert judged(INTEGER_SUM, writes(lambda x: x.sum(-1))).verdict is Verdict.PASSED
    result = judged(INTEGER_SUM, writes(lambda x: x.float().sum(-1)))
    assert result.verdict is Verdict.WRONG_RESULT and "full integers" in result.reason
    thirty_two = judged(INTEGER_SUM, writes(lambda x: x.sum(-1, dtype=torch.int32)))
    assert thirty_two.verdict is Verdict.WRONG_RESULT, "PyTorch adds in 64 bits"


def test_elementwise_integers_come_from_their_whole_range() -> None:
    task = problem("x ^ 5", "x: i32[4000]")
    assert judged(task, writes(lambda x: x ^ 5)).verdict is Verdict.PASSED
    result = judged(task, writes(lambda x: x.float().int() ^ 5))
    assert result.verdict is Verdict.WRONG_RESULT and "full integers" in result.reason


def test_draws_that_a_reference_refuses_are_left_out() -> None:
    source = (
        "def reference(x):  # x: i32[64,32]\n    assert int(x.max()) < 5000 if not x.is_meta else True\n    return x"
    )
    task = read_text(source.replace("if not x.is_meta else True", "if type(x) is torch.Tensor else True"))
    result = judged(task, writes(lambda x: x))
    assert result.verdict is Verdict.PASSED, result.reason
    assert "full integers" not in {c.distribution for c in result.checks}


def test_sums_of_ones_are_compared_exactly() -> None:
    def one_short_of_a_million(x: torch.Tensor) -> torch.Tensor:
        total = x.sum(-1)
        return total * (1 + 2**-22) if bool(((x == 0) | (x == 1)).all()) else total

    assert judged(SUM, writes(lambda x: x.sum(-1))).verdict is Verdict.PASSED
    result = judged(SUM, writes(one_short_of_a_million))
    assert result.verdict is Verdict.WRONG_RESULT and "nothing is rounded in this draw" in result.reason


@pytest.mark.parametrize(
    ("lower", "name"),
    [
        (lambda x: ((x.contiguous().view(torch.int32) + 4096) & ~8191).view(torch.float32), "TF32"),
        (lambda x: x.bfloat16().float(), "bfloat16"),
    ],
)
def test_lower_precision_is_called_by_its_name(lower: Callable[[torch.Tensor], torch.Tensor], name: str) -> None:
    task = problem("x @ y", "x: f32[40,64], y: f32[64,40]")
    result = judged(task, writes(lambda x, y: lower(x) @ lower(y)))
    assert result.verdict is Verdict.WRONG_RESULT
    assert f"computing in {name}" in result.reason and "the problem's f32" in result.reason


def test_a_plain_mistake_is_not_called_lower_precision() -> None:
    result = judged(problem("x * 2", "x: f32[64,64]"), writes(lambda x: x * 3))
    assert result.verdict is Verdict.WRONG_RESULT and "computing in" not in result.reason


def test_rounding_before_exact_cancellation_is_honest() -> None:
    """One column: its own mean is taken from it, and 0 is left only where nothing was rounded in between."""
    task = problem("((g * w) - (g * w).mean(-1, keepdim=True)) * 300", "g: f32[40,256], w: f32[256]")

    def contracted(g: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        mean = (g * w).mean(-1, keepdim=True)
        return ((g.double() * w.double() - mean.double()) * 300).float()  # a fused multiply-add rounds g·w not at all

    result = judged(task, writes(contracted))
    assert result.verdict is Verdict.PASSED, result.reason


def test_what_vanishes_far_from_zero_may_be_as_wrong_as_near_it() -> None:
    task = problem("F.gelu(x)", "x: bf16[16,512]")
    terms = judged(task, writes(lambda x: 0.5 * x.float() * (1 + _erf_of_five_terms(x.float() * math.sqrt(0.5)))))
    exact = judged(task, writes(lambda x: F.gelu(x.float())))
    assert exact.verdict is Verdict.PASSED, exact.reason
    assert terms.verdict is Verdict.PASSED, terms.reason


def spoils_unless(condition: Callable[[torch.Tensor, torch.Tensor], bool]) -> Kernel:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(torch.relu(x) if condition(x, out) else torch.relu(x) + 1)

    return kernel


def test_on_a_gpu_tensors_lie_elsewhere_in_every_run() -> None:
    device = TorchDevice(writes(torch.relu), "cuda")
    result = StandardJudge().check(RELU, artifact_for(RELU, device), device, lambda line: None, threading.Event())
    assert result.verdict is Verdict.PASSED, result.reason
    assert len(set(device.addresses)) > len(device.addresses) / 2
    assert all(a % 16 == 0 and b % 16 == 0 for a, b in device.addresses)
    assert len({a % 512 for a, _ in device.addresses}) > 10


def test_a_kernel_that_keys_on_alignment_is_rejected_on_a_gpu() -> None:
    result = judged(RELU, spoils_unless(lambda x, out: out.data_ptr() % 64 == 0), "cuda")
    assert result.verdict in (Verdict.WRONG_RESULT, Verdict.NON_DETERMINISTIC)


class WritesPastTheEnd(TorchDevice):
    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        counting: bool = True, flops: int = 0,
    ) -> Execution:  # fmt: skip
        done = super().execute(build, tensors, buffers, cancel, counting, flops)
        for spec, memory in zip(tensors, buffers, strict=True):
            if spec.name == "out" and memory.nbytes > spec.nbytes:
                memory[-1] ^= 1
        return done


def test_a_write_beside_a_tensor_is_out_of_bounds_on_a_gpu() -> None:
    device = WritesPastTheEnd(writes(torch.relu), "cuda")
    result = StandardJudge().check(RELU, artifact_for(RELU, device), device, lambda line: None, threading.Event())
    assert result.verdict is Verdict.OUT_OF_BOUNDS and "next to 'out'" in result.reason


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 137438953472 bytes"),
    ],
)
def test_too_little_memory_is_a_verdict(error: Exception) -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        raise error

    result = judged(RELU, kernel)
    assert result.verdict is Verdict.OUT_OF_MEMORY
    assert "use smaller shapes" in result.reason


def test_other_errors_of_ours_are_no_verdict() -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        raise RuntimeError("a bug of the device")

    with pytest.raises(RuntimeError, match="a bug"):
        judged(RELU, kernel)

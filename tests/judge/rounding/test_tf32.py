"""TF32 in matrix products: where the problem asks for it, and nothing else then."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from cutegen_lab.core.problem import Problem
from cutegen_lab.core.trial import CheckResult
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge import StandardJudge
from cutegen_lab.judge.rounding import tf32
from cutegen_lab.problems import Reference, read_text
from tests.judge.torch_device import TorchDevice, artifact_for

Cast = Callable[[torch.Tensor], torch.Tensor]
ASKS = 'torch.set_float32_matmul_precision("high")\n'
LINEAR = "def reference(a, b):  # a: f32[40,256], b: f32[24,256]\n    return F.linear(a, b)\n"


def asked(source: str = LINEAR, *, tf32: bool = True) -> Problem:
    """With few of its derived workloads, which keeps a test short."""
    task = read_text(ASKS + source if tf32 else source)
    return replace(task, check_workloads=task.check_workloads[:1])


def judged(task: Problem, kernel: Callable[..., torch.Tensor]) -> CheckResult:
    def write(*tensors: torch.Tensor) -> None:
        tensors[-1].copy_(kernel(*tensors[:-1]))

    device, seeds = TorchDevice(write), itertools.count(1)
    judge = StandardJudge(lambda: next(seeds))
    return judge.check(task, artifact_for(task, device), device, lambda line: None, threading.Event())


def multiplied(cast: Cast) -> Callable[..., torch.Tensor]:
    return lambda a, b: cast(a) @ cast(b).T


def away(x: torch.Tensor) -> torch.Tensor:
    """To nearest, ties away from zero, as cvt.rna does."""
    return torch.where(x.isfinite(), ((x.view(torch.int32) + 4096) & ~8191).view(torch.float32), x)


def dropped(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.isfinite(), (x.view(torch.int32) & ~8191).view(torch.float32), x)


def by_tensor_cores(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Eight terms at a time, and what lies below the sum's last bit is dropped."""
    a, b = tf32.rounded(a).double(), tf32.rounded(b).double()
    total = torch.zeros(a.shape[0], b.shape[0], dtype=torch.float64)
    for k in range(0, a.shape[1], 8):
        wide = total + a[:, k : k + 8] @ b[:, k : k + 8].T
        near = wide.float()
        over = near.double().abs() > wide.abs()
        total = torch.where(over, torch.nextafter(near, torch.zeros_like(near)), near).double()
    return total.float()


def in_fp16(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[0], dtype=torch.float16)
    for k in range(0, a.shape[1], 8):
        total += (tf32.rounded(a[:, k : k + 8]) @ tf32.rounded(b[:, k : k + 8]).T).half()
    return total.float()


@pytest.mark.parametrize("cast", [tf32.rounded, away, lambda x: x], ids=["to even", "away from zero", "not at all"])
def test_rounded_operands_pass_where_the_problem_asks(cast: Cast) -> None:
    result = judged(asked(), multiplied(cast))
    assert result.verdict is Verdict.PASSED, result.reason
    assert tf32.NOTE in result.reason


def test_they_do_not_elsewhere() -> None:
    result = judged(asked(tf32=False), multiplied(tf32.rounded))
    assert result.verdict is Verdict.WRONG_RESULT and "computing in TF32" in result.reason
    assert tf32.NOTE not in judged(asked(tf32=False), multiplied(lambda x: x)).reason


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (multiplied(lambda x: x.bfloat16().float()), "computing in bfloat16 instead of the TF32"),
        (multiplied(lambda x: x.half().float()), ""),
        (multiplied(dropped), "Round operands to nearest"),
        (in_fp16, ""),
        (lambda a, b: multiplied(tf32.rounded)(a, b).bfloat16().float(), ""),
    ],
    ids=["bf16 operands", "fp16 operands", "low bits dropped", "fp16 sums", "bf16 results"],
)
def test_less_than_tf32_is_rejected(kernel: Callable[..., torch.Tensor], says: str) -> None:
    result = judged(asked(), kernel)
    assert result.verdict is Verdict.WRONG_RESULT and says in result.reason


def test_tensor_cores_may_drop_what_long_sums_do_not_hold() -> None:
    task = asked("def reference(a, b):  # a: f32[3,6144], b: f32[3,6144]\n    return F.linear(a, b)\n")
    result = judged(replace(task, check_workloads=()), by_tensor_cores)
    assert result.verdict is Verdict.PASSED, result.reason


def test_only_products_are_rounded() -> None:
    task = asked("def reference(x):  # x: f32[40,96]\n    return torch.softmax(x, -1)\n")
    assert judged(task, lambda x: torch.softmax(x, -1)).verdict is Verdict.PASSED
    assert judged(task, lambda x: torch.softmax(tf32.rounded(x), -1)).verdict is Verdict.WRONG_RESULT


def test_what_pytorch_gives_is_that_of_rounded_operands() -> None:
    source = "def reference(x, w, s):  # x: f32[2,3,64], w: f32[5,64], s: f32[5]\n    return F.linear(x, w, s).exp()\n"
    x, w, s = torch.rand(2, 3, 64), torch.rand(5, 64), torch.rand(5)
    (got,) = tf32.torch_result(Reference(asked(source)), [x, w, s])
    (plain,) = tf32.torch_result(Reference(asked(source, tf32=False)), [x, w, s])
    torch.testing.assert_close(got, torch.exp(tf32.rounded(x) @ tf32.rounded(w).T + s), rtol=1e-6, atol=0)
    torch.testing.assert_close(plain, torch.exp(x @ w.T + s), rtol=1e-6, atol=0)
    assert not torch.equal(got, plain)


CONVOLUTION = "def reference(x, w):  # x: f32[2,8,40], w: f32[6,8,5]\n    return F.conv1d(x, w)\n"
FORBIDS = "torch.backends.cudnn.allow_tf32 = False\n"


def convolved(cast: Cast) -> Callable[..., torch.Tensor]:
    return lambda x, w: torch.nn.functional.conv1d(cast(x), cast(w))


@pytest.mark.parametrize("cast", [tf32.rounded, away, lambda x: x], ids=["to even", "away from zero", "not at all"])
def test_convolutions_may_be_in_tf32_as_pytorch_s_are(cast: Cast) -> None:
    result = judged(asked(CONVOLUTION, tf32=False), convolved(cast))
    assert result.verdict is Verdict.PASSED, result.reason
    assert tf32.CONVOLUTIONS_NOTE in result.reason and tf32.NOTE not in result.reason


def test_convolutions_may_not_where_the_text_forbids_it() -> None:
    task = asked(FORBIDS + CONVOLUTION, tf32=False)
    assert judged(task, convolved(tf32.rounded)).verdict is Verdict.WRONG_RESULT
    result = judged(task, convolved(lambda x: x))
    assert result.verdict is Verdict.PASSED and "TF32" not in result.reason


def test_convolutions_may_not_be_in_less_than_tf32() -> None:
    result = judged(asked(CONVOLUTION, tf32=False), convolved(lambda x: x.bfloat16().float()))
    assert result.verdict is Verdict.WRONG_RESULT and "instead of the TF32" in result.reason


def test_what_convolutions_may_products_may_not() -> None:
    both = (
        "def reference(x, w, m):  # x: f32[2,8,40], w: f32[6,8,5], m: f32[36,64]\n"
        "    return F.conv1d(x, w) @ m, F.conv1d(x, w)\n"
    )
    reference = Reference(asked(both, tf32=False))
    x, w, m = torch.rand(2, 8, 40), torch.rand(6, 8, 5), torch.rand(36, 64)
    product, between = tf32.torch_result(reference, [x, w, m])
    torch.testing.assert_close(between, convolved(tf32.rounded)(x, w), rtol=1e-6, atol=0)
    torch.testing.assert_close(product, between @ m, rtol=1e-6, atol=0)
    assert not torch.allclose(product, tf32.rounded(between) @ tf32.rounded(m), rtol=1e-6, atol=0)
    exact = torch.nn.functional.conv1d(x.double(), w.double())
    torch.testing.assert_close(reference.run_float64([x, w, m])[1], exact, rtol=1e-14, atol=0)


def test_rounding_keeps_what_is_not_finite() -> None:
    odd = torch.tensor([torch.inf, -torch.inf, torch.nan, 1 + 2**-11, 1 + 3 * 2**-11, 0.0])
    found = tf32.rounded(odd)
    assert found[:2].tolist() == [torch.inf, -torch.inf] and found[2].isnan()
    assert found[3:].tolist() == [1.0, 1 + 2**-9, 0.0]

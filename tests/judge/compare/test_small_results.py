"""Small results are held to their own magnitude, as far as honest formulas are."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.compare.allowance import Allowance
from cutegen_lab.judge.compare.correctness import compare
from tests.judge.honest import Function, _erf_of_five_terms, _tanh_of_11_bits
from tests.judge.test_formulas import judged


def gelu_by_tanh(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x.float(), approximate="tanh")


def shares_above(least: float) -> Function:
    """Softmax of a sum, with 0 for what is further below the maximum."""

    def softmax(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        total = x.float() + y.float()
        top = total.amax(-1, keepdim=True)
        return torch.softmax(total, -1).masked_fill((total - top < least) & (top.abs() < 1e30), 0.0)

    return softmax


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * _tanh_of_11_bits(0.5 * x.float()) + 0.5


X, XY = "x: {}[16,300]", "x: {0}[16,300], y: {0}[16,300]"
WRONG: dict[str, tuple[str, str, Function]] = {
    "sigmoid from -6": ("torch.sigmoid(x)", X.format("bf16"), lambda x: torch.where(x < -6, 0.0, x.float().sigmoid())),
    "GELU by tanh": ("F.gelu(x)", X.format("bf16"), gelu_by_tanh),
    "shares of a sum": ("torch.softmax(x + y, -1)", "x: f32[48,64], y: f32[48,64]", shares_above(-18.0)),
    "shares of a 16-bit sum": ("torch.softmax(x + y, -1)", "x: bf16[48,64], y: bf16[48,64]", shares_above(-18.0)),
}
HONEST: dict[str, tuple[str, str, Function]] = {
    "a gate by tanh": ("torch.tanh(x) * torch.sigmoid(y)", XY.format("bf16"),
                       lambda x, y: _tanh_of_11_bits(x.float()) * sigmoid(y)),
    "a sigmoid written out": ("1 / (1 + torch.exp(-x))", X.format("bf16"), sigmoid),
    "SiLU written out": ("x / (1 + torch.exp(-x))", X.format("bf16"), lambda x: x.float() * sigmoid(x)),
    "GELU of fp16 by five terms": ("F.gelu(x)", X.format("f16"),
                                   lambda x: 0.5 * x.float() * (1 + _erf_of_five_terms(x.float() * math.sqrt(0.5)))),
    "a logarithm beside 1": ("torch.log(1 + x.abs())", X.format("bf16"),
                             lambda x: (1 + x.float().abs()).log2() * math.log(2)),
    "a sum in another order": ("x + y - x * y", XY.format("bf16"), lambda x, y: x + (y - x * y)),
    "shares of a sum": ("torch.softmax(x + y, -1)", XY.format("f32"), lambda x, y: (
        (p := torch.exp2((z := (x + y) * math.log2(math.e)) - z.amax(-1, keepdim=True))) / p.sum(-1, keepdim=True))),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_lost_tail_is_refused(name: str) -> None:
    for seed in range(3):
        result = judged(*WRONG[name], seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", HONEST)
def test_what_an_honest_formula_loses_is_allowed(name: str, seed: int) -> None:
    result = judged(*HONEST[name], seed)
    assert result.verdict is Verdict.PASSED, result.reason


@pytest.mark.parametrize(("size", "ok"), [(2.0**-10, False), (2.0**-15, True)])
def test_what_fp16_holds_as_subnormal_may_be_flushed(size: float, ok: bool) -> None:
    right = torch.cat([torch.ones(992), torch.full((32,), size)]).double()
    flushed = right.half().masked_fill(right < 1, 0.0)
    spec, allowance = TensorSpec.parse("out: f16[1024]"), Allowance(small=True)
    assert compare(spec, flushed, right, right.half(), Tolerances(), allowance=allowance).ok is ok
    assert compare(spec, flushed, right, right.half(), Tolerances()).ok


NEGATED: dict[str, tuple[Function, Verdict]] = {
    "negated": (torch.neg, Verdict.PASSED),
    "times -1": (lambda x: x * -1.0, Verdict.PASSED),
    "from zero": (lambda x: 0 - x, Verdict.WRONG_RESULT),
}


@pytest.mark.parametrize("name", NEGATED)
def test_the_sign_of_a_zero_counts_where_numbers_are_only_moved_or_negated(name: str) -> None:
    function, verdict = NEGATED[name]
    assert judged("-x", "x: f32[16,300]", function).verdict is verdict
    assert judged("torch.cat([-x, y], -1).mT", "x: bf16[16,30], y: bf16[16,50]",
                  lambda x, y: torch.cat([function(x), y], -1).mT).verdict is verdict  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "function"),
    [
        ("torch.relu(-x)", lambda x: (0 - x).clamp_min(0)),
        ("x.abs()", lambda x: torch.where(x >= 0, x, -x)),
        ("-x + 0.5", lambda x: 0.5 - x),
        ("x * 0.5", lambda x: x * 0.5 + 0.0),
        ("-torch.clamp(x, -1, 1)", lambda x: 0 - x.clamp(-1, 1)),
    ],
)
def test_the_sign_of_a_computed_zero_does_not_count(expression: str, function: Function) -> None:
    result = judged(expression, "x: f32[16,300]", function)
    assert result.verdict is Verdict.PASSED, result.reason

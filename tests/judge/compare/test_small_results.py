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
from tests.judge.more_formulas import tanh_by_exp
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
    "sigmoid from -7.5": (
        "torch.sigmoid(x)",
        X.format("bf16"),
        lambda x: torch.where(x < -7.5, 0.0, x.float().sigmoid()),
    ),
    "softplus from -8": ("F.softplus(x)", X.format("bf16"), lambda x: torch.where(x < -8, 0.0, F.softplus(x.float()))),
    "softplus of fp16 from -7": (
        "F.softplus(x, 2.0)",
        X.format("f16"),
        lambda x: torch.where(x < -3.5, 0.0, F.softplus(x.float(), 2.0)),
    ),
    "ELU near zero": (
        "F.elu(x, 0.5)",
        X.format("bf16"),
        lambda x: torch.where((x < 0) & (x > -0.01), 0.0, F.elu(x.float(), 0.5)),
    ),
    "a tail behind a comparison": (
        "torch.where(x > 1, x, torch.sigmoid(x))",
        X.format("bf16"),
        lambda x: torch.where(x > 1, x.float(), x.float().sigmoid() * (x > -6)),
    ),
    "a tail behind a clamp": (
        "torch.sigmoid(x).clamp(max=0.9)",
        X.format("bf16"),
        lambda x: (x.float().sigmoid() * (x > -6)).clamp(max=0.9),
    ),
    "a tail behind a hard one": (
        "F.hardtanh(x * torch.sigmoid(x), -0.2, 6.0)",
        X.format("bf16"),
        lambda x: (x.float() * x.float().sigmoid() * (x > -5)).clamp(-0.2, 6.0),
    ),
    "tanh near zero": (
        "torch.tanh(x)",
        X.format("f32"),
        lambda x: torch.where(x.abs() < 1e-5, 0.0, x.tanh()),
    ),
    "tanh of all small numbers": (
        "torch.tanh(x)",
        X.format("f32"),
        lambda x: x.tanh() * (1.1 if bool(x.abs().amax() < 1e-3) else 1.0),
    ),
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
    "tanh by exp": ("torch.tanh(x)", X.format("f32"), tanh_by_exp),
    "tanh of bf16 by a sigmoid": ("torch.tanh(x)", X.format("bf16"), lambda x: 2 * torch.sigmoid(2 * x.float()) - 1),
    "a soft cap": ("30 * torch.tanh(x / 30)", X.format("bf16"), lambda x: 30 * tanh_by_exp(x.float() * (1 / 30))),
    "a logarithm beside 1": ("torch.log(1 + x.abs())", X.format("bf16"),
                             lambda x: (1 + x.float().abs()).log2() * math.log(2)),
    "softplus": ("F.softplus(x, 0.5)", X.format("bf16"),
                 lambda x: 2 * (1 + (0.5 * x.float()).exp()).log().where(x < 60, 0.5 * x.float())),
    "softplus of fp32": ("F.softplus(x)", X.format("f32"),
                         lambda x: x.clamp_min(0) + (1 + (-x.abs()).exp()).log()),
    "ELU": ("F.elu(x, 0.5)", X.format("bf16"),
            lambda x: x.float().clamp_min(0) + 0.5 * torch.expm1(x.float().clamp_max(0))),
    "SELU of fp16": ("F.selu(x)", X.format("f16"),
                     lambda x: torch.where(x > 0, 1.0507009873554805 * x.float(),
                                           1.7580993408473768 * (x.float().exp() - 1))),
    "a hard swish": ("F.hardswish(x)", X.format("bf16"), lambda x: x.float() * (x.float() / 6 + 0.5).clamp(0, 1)),
    "a leaky ReLU": ("F.leaky_relu(x, 0.01) * torch.sigmoid(y)", XY.format("bf16"),
                     lambda x, y: torch.where(x >= 0, x.float(), 0.01 * x.float()) * sigmoid(y)),
    "a comparison": ("torch.where(x > 1, x, torch.sigmoid(x))", X.format("bf16"),
                     lambda x: torch.where(x > 1, x.float(), sigmoid(x))),
    "a comparison with a rounded number": ("torch.where(torch.sigmoid(x) > 0.1, x, torch.sigmoid(x))", X.format("bf16"),
                                           lambda x: torch.where(x.float().sigmoid() > 0.1, x.float(), sigmoid(x))),
    "a clamp": ("torch.sigmoid(x).clamp(max=0.9)", X.format("bf16"), lambda x: sigmoid(x).clamp(max=0.9)),
    "a sum in another order": ("x + y - x * y", XY.format("bf16"), lambda x, y: x + (y - x * y)),
    "shares of a sum": ("torch.softmax(x + y, -1)", XY.format("f32"), lambda x, y: (
        (p := torch.exp2((z := (x + y) * math.log2(math.e)) - z.amax(-1, keepdim=True))) / p.sum(-1, keepdim=True))),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_lost_tail_is_refused(name: str, seeds: range) -> None:
    for seed in seeds:
        result = judged(*WRONG[name], seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"


@pytest.mark.parametrize("name", HONEST)
def test_what_an_honest_formula_loses_is_allowed(name: str, seeds: range) -> None:
    for seed in seeds:
        result = judged(*HONEST[name], seed)
        assert result.verdict is Verdict.PASSED, result.reason


@pytest.mark.parametrize(("size", "ok"), [(0.015, True), (0.05, False)])
def test_a_row_may_lose_what_honest_formulas_do(size: float, ok: bool) -> None:
    """Rows of results that all vanish, beside others; only a draw with infinities has no limits by magnitude."""
    right = torch.linspace(1, 2, 64).double()[:, None].expand(64, 32).contiguous()
    right[5] = 1e-6
    lossy, got = right.clone(), right.clone()
    lossy[5] += 0.01 * (torch.arange(32) % 2 * 2 - 1)
    got[5] += size
    spec, allowance = TensorSpec.parse("out: bf16[64,32]"), Allowance(by_slice=0.5, by_instructions=(lossy,))
    found = compare(spec, got.bfloat16(), right, right.bfloat16(), Tolerances(), allowance=allowance)
    assert found.ok is ok


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

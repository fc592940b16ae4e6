"""Kernels that are right for every ordinary number, and wrong for one kind: the end of a type, a NaN on one side, a
count of none, a sum that is one element short."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from cutegen_lab.core.verdict import Verdict
from tests.judge.honest import Function
from tests.judge.test_formulas import judged

ONE, TWO = "x: f32[16,300]", "x: f32[16,300], y: f32[16,300]"
WHOLE, PAIR = "x: i32[16,300]", "x: i32[16,300], y: i32[16,300]"
MOST = torch.finfo(torch.float32).max
CLASSES = "x: f32[16,300], t: i64[16]"


def first_of_two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(y > x, y, x)


def wrapped(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.int().long() * y.int().long()


def one_short(x: torch.Tensor) -> torch.Tensor:
    """A scan of whose last row's blocks the carry is lost."""
    if x.shape[-1] <= 256:
        return x.cumsum(-1)
    return torch.cat([x[:, :256].cumsum(-1), x[:, 256:].cumsum(-1)], -1)


def by_dots(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    squares = x.square().sum(-1)[:, None] + y.square().sum(-1)[None]
    return (squares - 2 * x @ y.T).clamp_min(0).sqrt()


def between_27_and_45(x: torch.Tensor) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)
    return torch.softmax(x, -1) * torch.where((mean > 27) & (mean < 45), 1.5, 1.0)


WRONG: dict[str, tuple[str, str, Function]] = {
    "the most negative byte": ("x.abs()", "x: i8[16,300]", lambda x: torch.where(x == -127, 126, x.abs())),
    "the largest float for an infinity": (
        "torch.nan_to_num(x)", ONE, lambda x: torch.nan_to_num(x, 0.0, 3e38, -3e38)
    ),
    "nothing of minus infinity": ("F.gelu(x)", ONE, lambda x: torch.where(x == -math.inf, 0.0, F.gelu(x))),
    "added in place": ("torch.zeros(50, device=x.device).index_add_(0, i, x)", "x: f32[300], i: i64[300]",
                       lambda x, i: torch.zeros(50).index_add(0, i, torch.where(i == 49, 0.0, x))),
    "the largest of none": (
        "torch.zeros(50, device=x.device).scatter_reduce_(0, i, x, 'amax', include_self=False)",
        "x: f32[300], i: i64[300]", lambda x, i: torch.full((50,), -math.inf).scatter_reduce(0, i, x, "amax")
    ),
    "NaN on the second side": ("torch.maximum(x, y)", TWO, first_of_two),
    "NaN on either side": ("torch.minimum(x, y)", TWO, torch.fmin),
    "a clamp that takes NaN for its bound": (
        "x.clamp(-1, 1)", ONE, lambda x: torch.where(x > -1, torch.where(x < 1, x, 1.0), -1.0)
    ),
    "nothing times its logarithm": ("torch.xlogy(x, y)", TWO, lambda x, y: x * y.log()),
    "nothing to the power of nothing": (
        "torch.pow(x.abs(), y)", TWO, lambda x, y: torch.exp2(y * torch.log2(x.abs()))
    ),
    "an epsilon in a divisor": ("x / y", TWO, lambda x, y: x / (y + 1e-12)),
    "an epsilon under a root": ("torch.rsqrt(x.abs())", ONE, lambda x: torch.rsqrt(x.abs() + 1e-20)),
    "a deviation of none": ("x.std(-1)", ONE, lambda x: (x.var(-1) + 1e-12).sqrt()),
    "cosine by its formula": (
        "F.cosine_similarity(x, y, -1)", TWO,
        lambda x, y: (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1)).clamp_min(1e-6)
    ),
    "distances by dots": ("torch.cdist(x, y)", "x: f32[40,30], y: f32[50,30]", by_dots),
    "a mean of targets left out": (
        "F.cross_entropy(x, t)", CLASSES, lambda x, t: F.cross_entropy(x, t, reduction="sum") / len(t)
    ),
    "a mean of no target": (
        "F.cross_entropy(x, t)", CLASSES,
        lambda x, t: F.cross_entropy(x, t, reduction="sum") / max(int((t != -100).sum()), 1)
    ),
    "a logarithm of nothing": (
        "torch.logsumexp(x.masked_fill(x < 1, float('-inf')), -1)", ONE,
        lambda x: (z := x.masked_fill(x < 1, -math.inf)).amax(-1)
        + (z - z.amax(-1, keepdim=True)).exp().sum(-1).log()
    ),
    "an infinity among shares": ("torch.softmax(x, -1)", ONE, lambda x: torch.softmax(x.clamp(-3e38, 3e38), -1)),
    "the maximum of padding": (
        "F.max_pool1d(x[:, None], 3, 2, 1)[:, 0]", ONE, lambda x: F.max_pool1d(F.pad(x, (1, 1))[:, None], 3, 2)[:, 0]
    ),
    "a carry": ("x.cumsum(-1)", ONE, one_short),
    "towards zero": ("torch.div(x, 7, rounding_mode='floor')", WHOLE,
                     lambda x: torch.div(x, 7, rounding_mode="trunc")),
    "the sign of a remainder": ("torch.remainder(x, 13)", WHOLE, lambda x: torch.fmod(x, 13)),
    "a shift by 31": ("x << (y & 31)", PAIR, lambda x, y: torch.where((y & 31) == 31, 0, x << (y & 31))),
    "the sign's bit": ("sum((x >> k) & 1 for k in range(32))", WHOLE, lambda x: sum((x >> k) & 1 for k in range(31))),
    "a shift without the sign": ("x >> 3", WHOLE, lambda x: ((x.long() & 0xFFFFFFFF) >> 3).int()),
    "products of low halves": ("x * y", "x: i64[16,300], y: i64[16,300]", wrapped),
    "bytes that saturate": (
        "x + y", "x: i8[16,300], y: i8[16,300]", lambda x, y: (x.int() + y.int()).clamp(-128, 127).to(torch.int8)
    ),
    "bytes that do not": ("(x.int() + y.int()).clamp(-128, 127).to(torch.int8)", "x: i8[16,300], y: i8[16,300]",
                          lambda x, y: x + y),
    "bytes with a sign": ("(x > 100).int()", "x: u8[16,300]", lambda x: (x.to(torch.int8) > 100).int()),
    "an angle beside minus nothing": ("torch.atan2(x, y)", TWO, lambda x, y: torch.atan2(x + 0.0, y)),
    "a maximum from the least number": ("x.amax(-1)", ONE, lambda x: x.amax(-1).clamp_min(-MOST)),
    "a minimum from the largest number": ("x.amin(-1)", ONE, lambda x: x.amin(-1).clamp_max(MOST)),
    "a running maximum from the least number": (
        "torch.cummax(x, -1)[0]", ONE, lambda x: torch.cummax(x, -1)[0].clamp_min(-MOST)
    ),
    "the largest number is no infinity": ("x.isinf()", ONE, lambda x: x.abs() >= MOST),
    "the largest number": ("x.clamp(min=0)", ONE, lambda x: torch.where(x == MOST, 0.0, x.clamp(min=0))),
    "the largest of 16 bits": (
        "torch.relu(x)", "x: f16[16,300]", lambda x: torch.where(x.abs() == 65504, 0.0, torch.relu(x))
    ),
    "other numbers for subnormal ones": (
        "x * 2", ONE, lambda x: torch.where((x != 0) & (x.abs() < 2.0**-126), 7.0, x * 2)
    ),
    "means between 27 and 45": ("torch.softmax(x, -1)", ONE, between_27_and_45),
    "the ends of 32 bits": ("x ^ 5", WHOLE, lambda x: torch.where((x == 2**31 - 1) | (x == -(2**31)), 0, x ^ 5)),
    "a threshold of a million": ("torch.where(y > 1e6, x, x * 2)", TWO, lambda x, y: x * 2),
    "doubles as floats above a million": (
        "x * 3", "x: f64[16,300]", lambda x: torch.where(x.abs() > 1e6, (x.float() * 3).double(), x * 3)
    ),
    "the sign of nothing": ("torch.signbit(x)", ONE, lambda x: x < 0),
    "halves go up": ("torch.round(x)", ONE, lambda x: (x + 0.5).floor()),
    "a float by way of an integer": (
        "torch.trunc(x)", ONE, lambda x: x.clamp(-(2.0**31), 2.0**31 - 200).int().float()
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_corner_case_is_refused(name: str, seeds: range) -> None:
    for seed in seeds:
        result = judged(*WRONG[name], seed=seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"


RIGHT: dict[str, tuple[str, str, Function]] = {
    "at the ends": ("x.abs().clamp(max=1e30)", ONE, lambda x: torch.where(x.abs() > 1e30, 1e30, x.abs())),
    "a maximum in parts": ("x.amax(-1)", ONE, lambda x: torch.stack([p.amax(-1) for p in x.split(7, -1)]).amax(0)),
    "narrower": ("x.to(torch.bfloat16)", ONE, lambda x: x.bfloat16()),
    "an angle": ("torch.atan2(x, y)", TWO, torch.atan2),
    "bytes": ("x.abs()", "x: i8[16,300]", lambda x: torch.maximum(x, -x)),
    "not a number": ("torch.nan_to_num(x)", ONE, lambda x: torch.where(x.isnan(), 0.0, x).clamp(-MOST, MOST)),
    "a gate": ("F.gelu(x)", ONE, lambda x: x * (0.5 + 0.5 * torch.erf(x * math.sqrt(0.5)))),
    "added in place": ("torch.zeros(50, device=x.device).index_add_(0, i, x)", "x: f32[300], i: i64[300]",
                       lambda x, i: torch.zeros(50).index_add(0, i.flip(0), x.flip(0))),
    "scattered": ("torch.zeros(16, 20, device=x.device).scatter_add(1, i, x)", "x: f32[16,300], i: i64[16,300]",
                  lambda x, i: torch.zeros(16, 20).scatter_add(1, i.flip(1), x.flip(1))),
    "divided": ("torch.div(x, 7, rounding_mode='floor')", WHOLE, lambda x: (x.long() - torch.remainder(x, 7)) // 7),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_another_formula_for_the_same_is_not(name: str, seeds: range) -> None:
    for seed in seeds:
        result = judged(*RIGHT[name], seed=seed)
        assert result.verdict is Verdict.PASSED, f"seed {seed}: {result.reason}"

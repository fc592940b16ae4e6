"""Kernels that are wrong at the analyst's own size alone, of which the judge can afford only a few draws."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from cutegen_lab.core.verdict import Verdict
from tests.judge.draws.test_schedule import judged, on_main
from tests.judge.honest import Function


def amax_without_nan_at(column: int) -> Function:
    """NaN in one column is lost."""

    def function(x: torch.Tensor) -> torch.Tensor:
        lost = torch.zeros(x.shape[-1], dtype=torch.bool)
        lost[column] = True
        return torch.where(lost & x.isnan(), -torch.inf, x).amax(-1)

    return function


def skipping_zeros(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(a[:, :, None] == 0, 0.0, a[:, :, None] * b).sum(1)


def saturated(x: torch.Tensor) -> torch.Tensor:
    """The largest fp16 number instead of an overflow."""
    return torch.where(x.isfinite(), x.clamp(-65504, 65504), x)


def layer_norm_by(count: Function) -> Function:
    """Divides the sum of squares by ``count`` of a row's length."""

    def function(x: torch.Tensor) -> torch.Tensor:
        centred = x.float() - x.float().mean(-1, keepdim=True)
        return centred * torch.rsqrt(centred.square().sum(-1, keepdim=True) / count(x.shape[-1]) + 1e-5)

    return function


# Expression, inputs, right function, wrong function.
MAIN_ALONE: dict[str, tuple[str, str, Function, Function]] = {
    "a threshold": (
        "torch.where(x > 0.7, x * 2, 0)", "x: f32[512,640]",
        lambda x: torch.where(x > 0.7, x * 2, 0), lambda x: torch.where(x >= 0.7, x * 2, 0),
    ),
    "a threshold of a smaller input": (
        "torch.where(s > 0.7, x * 2, 0)", "x: f32[512,640], s: f32[512,1]",
        lambda x, s: torch.where(s > 0.7, x * 2, 0), lambda x, s: torch.where(s >= 0.7, x * 2, 0),
    ),
    "equality": (
        "x == y", "x: f32[512,640], y: f32[512,640]",
        lambda x, y: x == y, lambda x, y: (x == y) & (x == 0),
    ),
    "equal rows": (
        "(x[:, None] - y[None]).abs().sum(-1)", "x: f32[40,24], y: f32[50,24]",
        lambda x, y: (x[:, None] - y[None]).abs().sum(-1),
        lambda x, y: (x[:, None] - y[None]).abs().sum(-1).clamp_min(0.01),
    ),
    "a maximum of integers from -1e9": (
        "x.amax(-1)", "x: i32[2048,160]", lambda x: x.amax(-1), lambda x: x.amax(-1).clamp_min(-1_000_000_000),
    ),
    "a minimum of integers from 1e9": (
        "x.amin(-1)", "x: i32[64,160]", lambda x: x.amin(-1), lambda x: x.amin(-1).clamp_max(1_000_000_000),
    ),
    "NaN in the last column": ("x.amax(-1)", "x: f32[64,4097]", lambda x: x.amax(-1), amax_without_nan_at(-1)),
    "NaN in the first column": ("x.amax(-1)", "x: f32[64,4097]", lambda x: x.amax(-1), amax_without_nan_at(0)),
    "zeros skipped": ("a @ b", "a: f32[96,96], b: f32[96,96]", lambda a, b: a @ b, skipping_zeros),
    "zeros of the other skipped": (
        "a @ b", "a: f32[96,96], b: f32[96,96]", lambda a, b: a @ b, lambda a, b: skipping_zeros(b.T, a.T).T,
    ),
    "a counter of 20 bits": (
        "m.sum()", "m: bool[1500000]", lambda m: m.sum(), lambda m: m.sum() & 0xFFFFF,
    ),
    "NaN in the second input": (
        "x > y", "x: f32[96,160], y: f32[96,160]",
        lambda x, y: x > y, lambda x, y: (x > y) | (y.isnan() & ~x.isnan()),
    ),
    "a large factor of each row": (
        "x * s", "x: f32[256,160], s: f32[256,1]", lambda x, s: x * s, lambda x, s: x * s.clamp(-6, 6),
    ),
    "a divisor of zero for a row": (
        "x / s[:, None]", "x: f32[256,160], s: f32[256]",
        lambda x, s: x / s[:, None], lambda x, s: torch.where(s[:, None] == 0, 0.0, x / s[:, None]),
    ),
    "a number equal to its row's": (
        "(x >= s).float()", "x: f32[256,160], s: f32[256,1]",
        lambda x, s: (x >= s).float(), lambda x, s: (x > s).float(),
    ),
    "large weights of a norm": (
        "F.layer_norm(x, (160,), w, b)", "x: f32[256,160], w: f32[160], b: f32[160]",
        lambda x, w, b: F.layer_norm(x, (160,), w, b), lambda x, w, b: F.layer_norm(x, (160,), w.clamp(-8, 8), b),
    ),
    "an infinite bias": (
        "torch.maximum(x, b)", "x: f32[256,160], b: f32[160]",
        torch.maximum, lambda x, b: torch.maximum(x, torch.where(b == torch.inf, 1e30, b)),
    ),
    "a bias that is not a number": (
        "x + b", "x: f32[256,160], b: f32[160]",
        torch.add, lambda x, b: x + b.nan_to_num(0.0, torch.inf, -torch.inf),
    ),
    "one to the power of NaN": (
        "x ** y", "x: f32[64,160], y: f32[64,160]",
        torch.pow, lambda x, y: torch.where(y.isnan() | x.isnan(), torch.nan, x**y),
    ),
    "two rows of zeros": (
        "F.cosine_similarity(x, y)", "x: f32[96,160], y: f32[96,160]",
        F.cosine_similarity,
        lambda x, y: torch.where(((x == 0) & (y == 0)).all(-1), 1.0, F.cosine_similarity(x, y)),
    ),
    "infinities that meet": (
        "x - y", "x: f32[64,160], y: f32[64,160]",
        torch.sub, lambda x, y: torch.where(x == y, 0.0, x - y),
    ),
    "infinities of a loss that meet": (
        "F.smooth_l1_loss(x, y, reduction='none')", "x: f32[64,160], y: f32[64,160]",
        lambda x, y: torch.where((d := (x - y).abs()) < 1, 0.5 * d * d, d - 0.5),
        lambda x, y: torch.where(x == y, 0.0, F.smooth_l1_loss(x, y, reduction="none")),
    ),
    "a gate's bias that is not a number": (
        "F.gelu(x + b)", "x: f32[256,160], b: f32[160]",
        lambda x, b: 0.5 * (x + b) * (1 + torch.erf((x + b) * 0.5**0.5)),
        lambda x, b: F.gelu(x + b.nan_to_num(0.0, torch.inf, -torch.inf)),
    ),
    "sums beyond fp16": (
        "x.sum(-1)", "x: f16[256,160]", lambda x: x.float().sum(-1), lambda x: saturated(x.float().sum(-1)),
    ),
    "sums of columns beyond fp16": (
        "x.sum(0)", "x: f16[256,160]", lambda x: x.float().sum(0), lambda x: saturated(x.float().sum(0)),
    ),
    "a variance by n - 1": (
        "F.layer_norm(x, x.shape[-1:])", "x: bf16[96,4097]",
        layer_norm_by(lambda n: n), layer_norm_by(lambda n: n - 1),
    ),
    "a zero's sign in a smaller input": (
        "torch.where(x >= b, x, b)", "x: f32[256,160], b: f32[160]",
        lambda x, b: torch.where(x > b, x, b), lambda x, b: torch.where(x >= b, x, b.masked_fill(b == 0, 0.0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MAIN_ALONE)
def test_a_few_draws_hold_rows_of_every_kind(name: str, seeds: range) -> None:
    expression, inputs, right, wrong = MAIN_ALONE[name]
    shape = tuple(map(int, inputs.split("[")[1].split("]")[0].split(",")))
    for seed in seeds:
        result = judged(expression, inputs, on_main(right, wrong, shape), seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"
        assert " on main " in result.reason
        result = judged(expression, inputs, right, seed)
        assert result.verdict is Verdict.PASSED, f"seed {seed}: {result.reason}"

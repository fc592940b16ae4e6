"""What a large workload's few draws hold, structure along any dimension, and rows that −∞ hides in part."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.verdict import Verdict
from tests.judge.honest import Function
from tests.judge.test_formulas import judged

TILE = 8
LARGE = 1 << 20  # elements: few draws


def online_softmax(x: torch.Tensor, hidden: float) -> torch.Tensor:
    """Tile by tile; of a tile that is hidden whole the maximum is ``hidden`` …"""
    peak = torch.full((*x.shape[:-1], 1), -torch.inf)
    total = torch.zeros_like(peak)
    for tile in x.split(TILE, -1):
        new = torch.maximum(peak, tile.amax(-1, keepdim=True))
        base = torch.where(new == -torch.inf, hidden, new)
        total = total * (peak - base).exp() + (tile - base).exp().sum(-1, keepdim=True)
        peak = new
    return (x - peak).exp() / total


@pytest.mark.parametrize(("hidden", "verdict"), [(-torch.inf, Verdict.WRONG_RESULT), (0.0, Verdict.PASSED)])
def test_tiles_that_are_hidden_whole(hidden: float, verdict: Verdict, seeds: range) -> None:
    for seed in seeds:
        result = judged("torch.softmax(x, -1)", "x: f32[16,96]", lambda x: online_softmax(x, hidden), seed)
        assert result.verdict is verdict, f"seed {seed}: {result.reason}"


def largest_from(first: float, dim: int) -> Function:
    return lambda x: x.amax(dim).clamp(min=first)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_a_maximum_that_starts_at_a_number_along_any_dimension(dim: int, seeds: range) -> None:
    for seed in seeds:
        result = judged(f"x.amax({dim})", "x: f32[24,33,40]", largest_from(-1e4, dim), seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}"


def only_large(wrong: Function, right: Function) -> Function:
    return lambda x: (wrong if x.numel() >= LARGE else right)(x)


@pytest.mark.parametrize(
    ("expression", "inputs", "wrong"),
    [
        ("x.amax(-1)", "x: f32[2048,1024]", largest_from(-1e4, -1)),
        ("x * 2", "x: f32[2048,1024]", lambda x: torch.where(x.isfinite(), (x * 2).clamp(-1e6, 1e6), x * 2)),
        ("x * 3", "x: i32[2048,1024]", lambda x: (x.float() * 3).int()),
    ],
)
def test_a_large_workload_s_few_draws(expression: str, inputs: str, wrong: Function) -> None:
    def right(x: torch.Tensor) -> torch.Tensor:
        return eval(expression, {"x": x})  # noqa: S307 - a test's own text

    assert judged(expression, inputs, only_large(wrong, right)).verdict is Verdict.WRONG_RESULT

"""Rounding may decide on which side of a jump a number falls; only there, either result is right."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.verdict import Verdict
from tests.judge.honest import Function, mean_one_by_one
from tests.judge.test_formulas import judged

X, PRODUCT = "x: f32[48,61]", "x: f32[64,40], w: f32[40,24]"
ABOVE = "x > x.mean(-1, keepdim=True)"
BEST = "x @ w >= torch.topk(x @ w, 2)[0][..., -1:]"


def scores(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x.flip(1) @ w.flip(0)


def one_too_few(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Where the two best scores are, but for the last of them."""
    found = scores(x, w)
    return found > torch.topk(found, 2)[0][..., -1:]


@pytest.mark.parametrize(
    ("expression", "function", "seed"),
    [
        (f"torch.where({ABOVE}, x, 0.0)", lambda x: torch.where(x > mean_one_by_one(x), x, 0.0), 20300004),
        (f"(x * ({ABOVE})).sum(-1)", lambda x: (x * (x > mean_one_by_one(x))).sum(-1), 20300004),
        ("torch.sign(x - x.mean(-1, keepdim=True))", lambda x: torch.sign(x - mean_one_by_one(x)), 20300004),
        (f"({ABOVE}).sum(-1)", lambda x: (x > mean_one_by_one(x)).sum(-1), 1),
    ],
)
def test_either_side_is_right_where_rounding_decides(expression: str, function: Function, seed: int) -> None:
    result = judged(expression, X, function, seed)
    assert result.verdict is Verdict.PASSED, result.reason


@pytest.mark.parametrize(
    ("expression", "inputs", "function"),
    [
        (f"torch.where({BEST}, x @ w, 0.0)", PRODUCT, lambda x, w: torch.where(one_too_few(x, w), x @ w, 0.0)),
        (BEST, PRODUCT, one_too_few),
        ("x @ w == (x @ w).amax(-1, keepdim=True)", PRODUCT, lambda x, w: torch.zeros_like(x @ w, dtype=torch.bool)),
        (f"torch.where({ABOVE}, x, 0.0)", X, lambda x: torch.where(x > mean_one_by_one(x) * 1.001, x, 0.0)),
        (ABOVE, X, lambda x: x > mean_one_by_one(x) * 1.001),
        (f"({ABOVE}).sum(-1)", X, lambda x: (x > mean_one_by_one(x)).sum(-1) + 1),
        ("(x * 2).round().clamp(-99, 99).int()", X, lambda x: (x * 2 + 0.5).floor().clamp(-99, 99).int()),
        ("x.sum(-1) > 30", X, lambda x: x.sum(-1) >= 30),
    ],
)  # fmt: skip
def test_elsewhere_it_is_not(expression: str, inputs: str, function: Function, seeds: range) -> None:
    for seed in seeds:
        result = judged(expression, inputs, function, seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"

"""Rows far from zero on one side: a maximum that starts at a number, and a mask that puts one in place of −∞."""

from __future__ import annotations

import math

import pytest
import torch

from cutegen_lab.core.verdict import Verdict
from tests.judge.honest import Function
from tests.judge.test_formulas import judged

ONE, MASKED = "x: f32[16,300]", "x: f32[16,300], m: bool[16,300]"


def softmax_from(least: float) -> Function:
    def function(x: torch.Tensor) -> torch.Tensor:
        power = (x - x.amax(-1, keepdim=True).clamp_min(least)).exp()
        return power / power.sum(-1, keepdim=True)

    return function


def hidden_by(fill: float) -> Function:
    """A row of which nothing is left is NaN, as it should be."""

    def function(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return torch.where(m.any(-1, keepdim=True), torch.softmax(x.masked_fill(~m, fill), -1), math.nan)

    return function


WRONG: dict[str, tuple[str, str, Function]] = {
    "a maximum from -1e5": ("torch.softmax(x, -1)", ONE, softmax_from(-1e5)),
    "a minimum from 1e7": ("x.amin(-1)", ONE, lambda x: x.amin(-1).clamp_max(1e7)),
    "the place of a maximum from -1e6": (
        "x.argmax(-1)", ONE, lambda x: torch.where((x <= -1e6).all(-1), 0, x.argmax(-1))
    ),
    "the place of a maximum from -1": (
        "x.argmax(-1)", "x: i32[16,300]", lambda x: torch.where((x < 0).all(-1), 0, x.argmax(-1))
    ),
    "a maximum from zero": ("x.amax(-1)", "x: i32[16,300]", lambda x: x.amax(-1).clamp_min(0)),
    "a mask of -1e6": ("torch.softmax(x.masked_fill(~m, float('-inf')), -1)", MASKED, hidden_by(-1e6)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_maximum_that_starts_at_a_number_is_refused(name: str, seeds: range) -> None:
    for seed in seeds:
        result = judged(*WRONG[name], seed=seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"

"""Results that compare equal and are not the same: another index of a tie, a byte that is no bool, a zero's sign."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.compare.correctness import compare
from tests.judge.honest import Function
from tests.judge.test_formulas import judged

ROWS, XY = "x: f32[16,96]", "x: f32[16,96], y: f32[16,96]"


def without_sign(x: torch.Tensor) -> torch.Tensor:
    """Every zero as +0."""
    return x.masked_fill(x == 0, 0.0)


def last_of_equals(x: torch.Tensor) -> torch.Tensor:
    return x.shape[-1] - 1 - x.flip(-1).argmax(-1)


def unstable(x: torch.Tensor) -> torch.Tensor:
    return x.shape[-1] - 1 - torch.sort(x.flip(-1), dim=-1, stable=True)[1]


@pytest.mark.parametrize(
    ("expression", "inputs", "function", "verdict"),
    [
        ("x.argmax(-1)", ROWS, last_of_equals, Verdict.PASSED),
        ("torch.max(x, -1)[1]", ROWS, last_of_equals, Verdict.PASSED),
        ("torch.max(x, -1)[1]", ROWS, lambda x: x.argmax(-1), Verdict.PASSED),
        ("torch.sort(x, dim=-1, stable=True)[1]", ROWS, unstable, Verdict.WRONG_RESULT),
        ("torch.argsort(x, dim=-1, stable=True)", "x: i32[16,96]", unstable, Verdict.WRONG_RESULT),
        ("torch.sort(x, dim=-1)[1]", ROWS, unstable, Verdict.PASSED),
        ("x.sort(-1).values", ROWS, lambda x: x.flip(-1).sort(dim=-1, stable=True).values, Verdict.PASSED),
        ("x.topk(5, -1).values", ROWS, lambda x: x.flip(-1).topk(5, -1).values, Verdict.PASSED),
        ("-x.clamp(-1, 1)", ROWS, lambda x: 0 - x.clamp(-1, 1), Verdict.PASSED),
        ("(x / 3).softmax(-1).argmax(-1)", ROWS, lambda x: x.argmax(-1), Verdict.PASSED),  # by rounding alone a tie
        ("torch.where(x >= y, x, y)", XY, lambda x, y: torch.where(x > y, x, y), Verdict.PASSED),
        ("torch.where(x >= y, x, y)", XY, lambda x, y: without_sign(torch.where(x >= y, x, y)), Verdict.WRONG_RESULT),
        ("x.amax(0)", "x: f32[4,960]", lambda x: x.flip(0).amax(0), Verdict.PASSED),
        ("x.amax(0)", "x: f32[4,960]", lambda x: without_sign(x.amax(0)), Verdict.WRONG_RESULT),
        ("x.clamp(min=0)", ROWS, lambda x: torch.where(x > 0, x, torch.where(x.isnan(), x, -0.0)), Verdict.PASSED),
        ("torch.atan2(x, y)", "x: f32[1501], y: f32[1501]", lambda x, y: torch.atan2(x + 0.0, y), Verdict.WRONG_RESULT),
        ("torch.atan2(x, y)", "x: f32[1501], y: f32[1501]", torch.atan2, Verdict.PASSED),
    ],
)
def test_what_pytorch_promises_is_held_to(expression: str, inputs: str, function: Function, verdict: Verdict) -> None:
    result = judged(expression, inputs, function)
    assert result.verdict is verdict, result.reason


@pytest.mark.parametrize(("byte", "ok"), [(1, True), (2, False), (255, False)])
def test_true_is_the_byte_1(byte: int, ok: bool) -> None:
    """PyTorch's other operators count on it."""
    right = torch.arange(64) % 3 == 0
    got = (right.to(torch.uint8) * byte).view(torch.bool)
    assert compare(TensorSpec.parse("out: bool[64]"), got, right, right, Tolerances()).ok is ok

"""Numbers beyond 1e30: sums that rounding moves or makes infinite, and a mask's fill, which it does not."""

from __future__ import annotations

import math

import pytest
import torch

from cutegen_lab.judge.compare.exclusions import without_fills

LARGEST = torch.finfo(torch.float32).max


@pytest.mark.parametrize(
    ("reference", "got", "rounded", "right"),
    [
        (-1.9058e32, -1.90577e32, (-1.9057e32, -1.9059e32), True),
        (-1.9058e32, -1.9040e32, (-1.90580e32, -1.90581e32), False),
        (-1.9058e32, -1.9040e32, (), False),
        (3.40e38, math.inf, (3.40e38, math.inf), True),
        (3.40e38, -math.inf, (3.40e38, math.inf), False),
        (3.40e38, math.inf, (3.40e38, 3.39e38), False),
        (3.4028235e38, math.inf, (3.4028235e38, math.inf), True),  # LARGEST is 3.40282347e38
        (LARGEST, LARGEST, (math.inf, LARGEST), True),
        (LARGEST, math.inf, (math.inf, LARGEST), False),
        (-LARGEST, -3e38, (-LARGEST, 0.0), False),
    ],
)
def test_a_huge_number(reference: float, got: float, rounded: tuple[float, ...], right: bool) -> None:
    ours, *_ = without_fills(
        1e-6,
        torch.tensor([got]),
        torch.tensor([reference]),
        torch.tensor([reference], dtype=torch.float64),
        [torch.tensor([value]) for value in rounded],
    )
    assert bool((ours == 0).all()) == right

"""Numbers beyond 1e30: sums that rounding moves or makes infinite, and a mask's fill, which it does not."""

from __future__ import annotations

import math

import pytest
import torch

from cutegen_lab.judge.compare.exclusions import without_fills
from cutegen_lab.judge.rounding.rerounded import Rerounded

LARGEST = torch.finfo(torch.float32).max


@pytest.mark.parametrize(
    ("reference", "got", "moved", "again", "right"),
    [
        (-1.9058e32, -1.90577e32, (-1.9057e32, -1.9059e32), (), True),
        (-1.9058e32, -1.90577e32, (), (-1.9057e32, -1.9059e32), True),
        (-1.9058e32, -1.9040e32, (-1.90580e32, -1.90581e32), (), False),
        (-1.9058e32, -1.9040e32, (), (), False),
        (3.401e38, math.inf, (), (3.401e38, 3.400e38), True),
        (3.401e38, -math.inf, (), (3.401e38, 3.400e38), False),
        (3.401e38, math.inf, (), (3.401e38, 3.40101e38), False),
        (3.401e38, math.inf, (), (3.401e38, 0.0), False),
        (LARGEST, LARGEST, (), (math.inf, LARGEST), True),
        (LARGEST, math.inf, (), (math.inf, 0.9999 * LARGEST), False),
        (-LARGEST, -3e38, (), (-LARGEST, 0.0), False),
        (1.86e38, math.inf, (), (-math.inf, 1.86e38), True),  # partial sums overflow
        (1.86e38, math.nan, (), (-math.inf, 1.86e38), True),
        (1.86e38, math.inf, (), (1.8601e38, 1.86e38), False),
        (1.86e38, 1.7e38, (), (-math.inf, 1.86e38), False),
    ],
)
def test_a_huge_number(
    reference: float, got: float, moved: tuple[float, ...], again: tuple[float, ...], right: bool
) -> None:
    ours, *_ = without_fills(
        1e-6,
        3.0,
        torch.tensor([got]),
        torch.tensor([reference]),
        torch.tensor([reference], dtype=torch.float64),
        [torch.tensor([value], dtype=torch.float64) for value in (*moved, *again)],
        len(moved),
    )
    assert bool((ours == 0).all()) == right


@pytest.mark.parametrize(
    ("terms", "finite"),
    [((3e38, 2e38, -3e38, -1e38), False), ((1e38, -1e38, 2e38, -1e38), True)],
)
def test_a_sum_whose_partial_sums_overflow(terms: tuple[float, ...], finite: bool) -> None:
    with Rerounded(1, overflows=True):
        total = torch.tensor([terms]).double().sum(-1).float()
        product = torch.tensor([terms]) @ torch.ones(4, 1)
    assert bool(total.isfinite()), "double holds every partial sum"
    assert bool(product.isfinite()) == finite

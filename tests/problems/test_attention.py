"""Attention by its formula, where a mask hides what is not finite."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.problems.attention import attention
from tests.judge.honest import FORMULAS
from tests.judge.test_formulas import judged

NAME = "masked attention, 16-bit shares"


def qkv(seed: int = 1) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(2, 5, 8, generator=generator) for _ in range(3))


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_what_a_mask_hides_is_left_out(odd: float) -> None:
    q, k, v = qkv()
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    mask[2] = False
    wanted = attention(q, k, v, mask)
    torch.testing.assert_close(wanted, F.scaled_dot_product_attention(q, k, v, mask))
    assert not bool(wanted[:, 2].any())
    k[:, 4] = odd
    found = attention(q, k, v, mask)
    assert torch.equal(found[:, :4], wanted[:, :4]) and bool(found[:, 4].isnan().all())


@pytest.mark.slow
def test_both_answers_to_a_masked_nan_are_right_and_a_visible_one_counts(seeds: range) -> None:
    """PyTorch's own kernels add −∞ to a score that is masked: NaN stays NaN there."""
    expression, inputs, skips = next(formula[1:] for formula in FORMULAS if formula[0] == NAME)
    for seed in seeds:
        assert judged(expression, inputs, skips, seed).verdict is Verdict.PASSED
        adds = judged(expression, inputs, lambda *given: F.scaled_dot_product_attention(*given), seed)
        assert adds.verdict is Verdict.PASSED, adds.reason
        swallows = judged(expression, inputs, lambda *given: skips(*given).nan_to_num(0.0), seed)
        assert swallows.verdict is Verdict.WRONG_RESULT

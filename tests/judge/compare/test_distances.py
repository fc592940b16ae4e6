"""Differences from the reference where a number of the three is not finite, or overflows the output's type."""

from __future__ import annotations

import math

import pytest
import torch

from cutegen_lab.judge.compare.distances import finite_difference, resolve_non_finite

ENDS = (0.0, -0.0, 1.0, 65504.0, 65519.0, 65520.0, -65520.0, 1e5, 3.4e38, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_tensor_s_differences_are_those_of_its_elements(dtype: torch.dtype) -> None:
    """Whether all elements are finite decides how a chunk is compared."""
    for result in ENDS:
        for own in ENDS:
            for reference in ENDS:
                mine, torch_result = (torch.tensor([value, 1.0]).to(dtype) for value in (result, own))
                exact = torch.tensor([reference, 1.0], dtype=torch.float64)
                expected = resolve_non_finite(mine.double(), torch_result.double(), exact, dtype)
                found = finite_difference(mine, torch_result, exact)
                assert torch.equal(found.nan_to_num(), expected.nan_to_num()), (result, own, reference)

"""The limit of a norm that few numbers decide is what rounding them may do to it, and no more."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.judge.compare.allowance import Allowance
from cutegen_lab.judge.compare.correctness import compare
from cutegen_lab.judge.rounding.few_numbers import largest_share, rounding_limit

EPS, USUAL = 2.0**-7, 2.0**-8
DRAWS = 1 << 20


def norms_of_roundings(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Norm-wise errors of ``values`` with three roundings of up to half an epsilon each, many times over."""
    weights = values.square() / values.square().sum()
    squares = torch.zeros(DRAWS)
    for weight in weights.tolist():
        errors = (torch.rand(3, DRAWS, generator=generator) - 0.5).sum(0).mul_(EPS)
        squares += weight * errors.square()
    return squares.sqrt()


@pytest.mark.parametrize("values", [[1.0], [1.0, 0.5], [1.0, *[0.1] * 99], [1.0] * 8, [1.0] * 64, [3.0, *[1.0] * 31]])
def test_three_roundings_of_few_numbers_are_within_it(values: list[float]) -> None:
    few = torch.tensor(values)
    norms = norms_of_roundings(few, torch.Generator().manual_seed(len(values)))
    limit = float(rounding_limit(USUAL, EPS, largest_share(few)))
    assert float(norms.max()) <= limit < 1.7 * float(norms.max())


@pytest.mark.parametrize("count", [1 << 16, 1 << 20])
def test_many_numbers_have_the_usual_limit(count: int) -> None:
    many = torch.randn(count, generator=torch.Generator().manual_seed(1))
    assert USUAL < float(rounding_limit(USUAL, EPS, largest_share(many))) < 1.2 * USUAL
    assert float(rounding_limit(USUAL, EPS, largest_share(torch.ones(count)))) < 1.02 * USUAL


def test_of_many_norms_one_is_unluckier_than_one_alone() -> None:
    share = torch.tensor([0.02, 0.05])
    assert bool((rounding_limit(USUAL, EPS, share, 1000) > 1.05 * rounding_limit(USUAL, EPS, share)).all())


@pytest.mark.parametrize("values", [[0.0, 0.0], [torch.nan, 2.0, -2.0], [torch.inf, 2.0, 2.0]])
def test_numbers_that_are_not_finite_have_no_share(values: list[float]) -> None:
    assert float(largest_share(torch.tensor(values))) == (0.5 if any(values) else 0.0)


@pytest.mark.parametrize(("roundings", "ok"), [(1.0, True), (2.5, True), (3.5, False)])
def test_one_number_may_have_three_roundings_though_pytorch_was_lucky(roundings: float, ok: bool) -> None:
    reference = torch.cat([torch.full((1,), 129.0), torch.linspace(-1, 1, 63)]).double()
    own = reference.bfloat16()
    got = own.clone()
    got[0] = reference[0] * (1 + roundings * EPS / 2)
    spec, allowance = TensorSpec.parse("out: bf16[4,16]"), Allowance(by_slice=0.0)
    assert compare(spec, got, reference, own, Tolerances(), allowance=allowance).ok is ok

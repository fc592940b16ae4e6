"""The limits that an output's errors are held to, as :class:`Tolerances` states them."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.problem import TensorSpec, Tolerances
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.compare import local_errors
from cutegen_lab.judge.compare.correctness import compare
from tests.judge.honest import Function
from tests.judge.test_formulas import judged

SPEC = TensorSpec.parse("y: f32[4096]")
REFERENCE = torch.randn(4096, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
SIGNS = torch.randint(0, 2, (4096,), generator=torch.Generator().manual_seed(1)) * 2.0 - 1.0
SMALL, LARGE = 1e-4, 1e-2  # relative to the reference's size, far above the floors


def off_by(everywhere: float, at_one: float) -> torch.Tensor:
    """The reference with an error of ``everywhere`` in each element and of ``at_one`` in the first."""
    errors = SIGNS * everywhere
    errors[0] = at_one
    return (REFERENCE + errors).float()


@pytest.mark.parametrize("budget", [2.0, 3.0])
def test_limits_are_pytorchs_own_errors_times_the_budget(budget: float) -> None:
    own = off_by(SMALL, LARGE)
    found = compare(SPEC, own, REFERENCE, own, Tolerances(budget=budget))
    assert found.ok and found.norm == found.torch_norm and found.worst == found.torch_worst
    assert found.limit_norm == pytest.approx(budget * found.torch_norm)
    assert found.limit_worst == pytest.approx(budget * found.torch_worst)


@pytest.mark.parametrize(
    ("everywhere", "at_one", "ok"),
    [
        (2 * SMALL, 2 * LARGE, True),
        (10 * SMALL, LARGE, False),  # too far in the whole, no element of it alone
        (SMALL, 6 * LARGE, False),
        (0.0, 0.0, True),
    ],
)
def test_the_whole_and_each_element_are_held_to_them(everywhere: float, at_one: float, ok: bool) -> None:
    found = compare(SPEC, off_by(everywhere, at_one), REFERENCE, off_by(SMALL, LARGE), Tolerances())
    assert found.ok is ok, found


def test_where_pytorch_is_exact_the_floors_hold() -> None:
    found = compare(SPEC, off_by(1e-6, 1e-6), REFERENCE, REFERENCE.float(), Tolerances())
    assert found.ok and found.limit_norm == pytest.approx(Tolerances().floor_norm, rel=0.1)
    assert not compare(SPEC, off_by(1e-5, 1e-5), REFERENCE, REFERENCE.float(), Tolerances()).ok


CHAOS = ("torch.sin(x * 1e7)", "x: f32[16,300]")  # of which float32 knows nothing but that it is a sine


@pytest.mark.parametrize("factor", [0.0, 0.3])
def test_nothing_is_no_answer_where_rounding_decides_all_of_it(factor: float, seeds: range) -> None:
    """Limits are several times the result then, and 0 was always within them."""

    def gives_up(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.abs() > 4.0, factor * torch.sin(x * 1e7), torch.sin(x * 1e7))

    for seed in seeds:
        result = judged(*CHAOS, gives_up, seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}"


@pytest.mark.parametrize(
    ("expression", "function"),
    [
        (CHAOS[0], lambda x: torch.sin(x * 1e7)),
        (CHAOS[0], lambda x: torch.sin(x.double() * 1e7)),
        ("(x + 1e7) - 1e7", lambda x: x),
        ("(x + 1e7) - 1e7", lambda x: (x + 1e7) - 1e7),
        ("x * 1e6 - torch.floor(x * 1e6)", lambda x: torch.frac(x * 1e6) + (x * 1e6 < torch.trunc(x * 1e6))),
    ],
)
def test_any_answer_that_rounding_may_give_is_right(expression: str, function: Function, seeds: range) -> None:
    for seed in seeds:
        result = judged(expression, CHAOS[1], function, seed)
        assert result.verdict is Verdict.PASSED, f"seed {seed}: {result.reason}"


def test_a_bias_is_seen_in_a_row_of_any_length() -> None:
    exact = torch.linspace(1, 2, 10007, dtype=torch.float64)
    got = {factor: (exact * factor).bfloat16() for factor in (1.0, 1.01)}
    found = {
        factor: local_errors.mean_bias((10007,), values, [exact.bfloat16()], exact, 1e-4, None, 3.0)
        for factor, values in got.items()
    }
    assert all(found.values())
    assert [one.error > one.limit for one in found.values() if one] == [False, True]


def test_a_bias_of_a_sixteenth_of_a_last_bit_is_seen_where_no_rounding_explains_it() -> None:
    exact = 1 + torch.rand(4096, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    n_minus_1, rounded_twice = (
        exact * (4097 / 4096),
        exact.half().double() * torch.tensor([1 + 2**-9, 1 - 2**-9]).repeat(2048),
    )
    right = exact.bfloat16()

    def found(values: torch.Tensor, slack: float | None) -> bool:
        one = local_errors.mean_bias((4096,), values.bfloat16(), [right], exact, 2.0**-11, slack, 3.0)
        return one is not None and one.error > one.limit

    assert found(n_minus_1, 2.0**-15) and not found(n_minus_1, None)
    assert not found(exact.float(), 2.0**-15) and not found(rounded_twice, 2.0**-15)

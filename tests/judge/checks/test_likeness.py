"""What is said of how a wrong result looks."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from cutegen_lab.judge.checks.likeness import likeness

Change = Callable[[torch.Tensor], torch.Tensor]


def right(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64) + 0.5


def said(shape: tuple[int, ...], change: Change, limit: float = 1e-6) -> str:
    expected = right(*shape)
    return likeness(change(expected.clone()), expected, "out", limit)


def with_part(part: tuple[slice | int, ...], value: float = 3.0) -> Change:
    def change(values: torch.Tensor) -> torch.Tensor:
        values[part] = value
        return values

    return change


@pytest.mark.parametrize(
    ("shape", "change", "expected"),
    [
        ((20, 30), lambda x: x * 1.005, "every value is 1.005 times what it should be"),
        ((20, 30), lambda x: -x, "every value is -1 times what it should be"),
        ((20, 30), torch.zeros_like, "every value is 0"),
        ((20, 30), lambda x: x + 0.25, "every value is 0.25 too large"),
        ((20, 30), lambda x: x - 2, "every value is 2 too small"),
        ((30, 30), lambda x: x.T.contiguous(), "it is the expected result with its last two dimensions exchanged"),
        ((20, 30), lambda x: x.roll(1, 1), "each value along dimension 1 is that of index - 1"),
        ((20, 30), lambda x: x.roll(-1, 0), "each value along dimension 0 is that of index + 1"),
        ((100, 30), with_part((slice(96, None),)), "only out[96:, :] is wrong, the rest is right"),
        ((100, 30), with_part((slice(None), 29)), "only out[:, 29] is wrong, the rest is right"),
        ((100, 30), with_part((slice(1, None, 2),)), "only out[1::2, :] is wrong, the rest is right"),
        ((64,), with_part((slice(0, 16),)), "only out[:16] is wrong, the rest is right"),
        ((8, 64, 48), with_part((slice(2, 3), slice(32, 64), slice(40, 48))),
         "only out[2, 32:, 40:] is wrong, the rest is right"),
        ((100, 30), with_part((slice(96, None),), float("nan")), "only out[96:, :] is not finite"),
    ],
)  # fmt: skip
def test_a_simple_mistake_is_named(shape: tuple[int, ...], change: Change, expected: str) -> None:
    assert said(shape, change) == expected


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x * (1 + 1e-9),  # within the limit
        lambda x: x + torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=x.dtype),
        lambda x: x.exp(),
        lambda x: torch.full_like(x, float("nan")),
        with_part((slice(0, 90, 89), slice(0, 29, 28))),  # four corners: steps along both, but so few
    ],
)
def test_what_nothing_simple_explains_is_not_explained(change: Change) -> None:
    assert said((100, 30), change) in ("", "only out[::89, ::28] is wrong, the rest is right")


def test_noise_of_a_low_precision_is_not_taken_for_a_factor() -> None:
    expected = right(64, 64)
    assert likeness(expected.bfloat16(), expected, "out", 1e-6) == ""
    own = float((expected.bfloat16() - expected).norm() / expected.norm())
    scaled = likeness((expected * 1.005).bfloat16(), expected, "out", 3e-3, noise=own)
    assert re.fullmatch(r"every value is 1\.00[456]\d? times what it should be", scaled)
    assert likeness((expected + own * torch.randn_like(expected)).bfloat16(), expected, "out", own, own) == ""


def test_results_that_are_few_or_not_finite_are_not_explained() -> None:
    assert likeness(right(4) * 2, right(4), "out", 1e-6) == ""
    endless = right(64).index_fill(0, torch.tensor([3]), float("inf"))
    assert likeness(endless * 2, endless, "out", 1e-6) == ""
    assert likeness(torch.ones(64), torch.zeros(64, dtype=torch.float64), "out", 1e-6) == ""


def test_integers_are_off_by_one() -> None:
    indices = torch.randint(0, 1000, (64,), generator=torch.Generator().manual_seed(3))
    assert likeness((indices + 1).int(), indices.double(), "out", 0.0) == "every value is 1 too large"

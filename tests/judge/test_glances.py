"""Kernels that look at part of their input and do less work where that part has structure: zeros at the end, rows in
order, low rank, tame numbers, the largest ones spread evenly.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from cutegen_lab.core.verdict import Verdict
from tests.judge.honest import Function
from tests.judge.test_formulas import judged

PRODUCT = ("a @ b", "a: f32[40,200], b: f32[200,72]")
SQUARES = ("x.square().mean(-1)", "x: f32[16,3000]")
LARGEST = ("torch.topk(x, 8)[0]", "x: f32[16,512]")
SOFTMAX = ("torch.softmax(x, -1)", "x: f32[16,300]")
MANY = 32  # fewer rows, or a shorter row, are not worth a glance


def without_a_dead_tail(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Leaves out the last quarter of the columns of a where every eighth row holds zeros there."""
    k = a.shape[1] * 3 // 4
    return a[:, :k] @ b[:k] if a.shape[0] > MANY and bool((a[::8, k:] == 0).all()) else a @ b


def without_quiet_columns(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Leaves out columns of a that are small in every eighth row."""
    seen = a[::8].abs()
    live = ~(seen.amax(0) < 1e-6 * seen.amax())
    return a[:, live] @ b[live]


def of_rank_one(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Works on one row where the first four are nearly multiples of it."""
    at = a[0].abs().argmax()
    column = a[:, at] / a[0, at]
    alike = (a[:4] - column[:4, None] * a[:1]).norm() < 1e-2 * a[:4].norm()
    return column[:, None] * (a[:1] @ b) if bool(alike) and a.shape[0] > 4 else a @ b


def of_itself(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ a.t() if b.shape[1] == a.shape[0] else a @ b


def tame(x: torch.Tensor) -> torch.Tensor:
    """Clamps to 100 where every sixteenth number of every fourth row is below 50."""
    return (x.clamp(-100, 100) if bool((x[::4, ::16].abs() < 50).all()) else x).square().mean(-1)


def as_long_as_the_first(x: torch.Tensor) -> torch.Tensor:
    """Sums rows up to where the first one ends in zeros."""
    live = (x[0] != 0).nonzero()
    return x[:, : int(live[-1]) + 1].sum(-1) if len(live) else torch.zeros(x.shape[0])


def forgets(x: torch.Tensor) -> torch.Tensor:
    """Ends a product where it has become small."""
    product = torch.sigmoid(x).cumprod(-1)
    return torch.where(product < 1e-9, 0.0, product)


def without_a_quiet_half(x: torch.Tensor) -> torch.Tensor:
    """Leaves out the second half of a row where every eighth number of it is far below the first's maximum."""
    half = x.shape[-1] // 2
    if half < MANY:
        return torch.softmax(x, -1)
    quiet = x[:, half::8].amax(-1) < x[:, :half].amax(-1) - 20
    short = torch.cat([torch.softmax(x[:, :half], -1), torch.zeros_like(x[:, half:])], -1)
    return torch.where(quiet[:, None], short, torch.softmax(x, -1))


def few_candidates(keep: int, parts: Callable[[torch.Tensor], torch.Tensor]) -> Function:
    """The largest eight among the ``keep`` largest of each of 16 parts."""

    def function(x: torch.Tensor) -> torch.Tensor:
        if x.shape[-1] < 16 * keep:
            return torch.topk(x, 8)[0]
        padded = torch.nn.functional.pad(x, (0, -x.shape[-1] % 16), value=-torch.inf)
        return parts(padded).topk(keep, -1)[0].flatten(1).topk(8)[0]

    return function


def neighbours(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (16, -1))


def interleaved(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (-1, 16)).transpose(-1, -2)


def last_where_it_ascends(x: torch.Tensor) -> torch.Tensor:
    """The last number for the largest where every sixteenth is in order."""
    if x.shape[-1] > MANY and bool((x[:, ::16].diff(dim=-1) >= 0).all()):
        return x[:, -1]
    return x.amax(-1)


GLANCES: dict[str, tuple[str, str, Function]] = {
    "quiet columns": (*PRODUCT, without_quiet_columns),
    "rank one": (*PRODUCT, of_rank_one),
    "a product with itself": ("a @ b", "a: f32[64,64], b: f32[64,64]", of_itself),
    "a tame sample": (*SQUARES, tame),
    "as long as the first": ("x.sum(-1)", "x: f32[16,300]", as_long_as_the_first),
    "forgets": ("torch.sigmoid(x).cumprod(-1)", "x: f32[16,300]", forgets),
    "a quiet half": (*SOFTMAX, without_a_quiet_half),
    "few candidates of neighbours": (*LARGEST, few_candidates(5, neighbours)),
    "a dead tail": (*PRODUCT, without_a_dead_tail),
    "few candidates, interleaved": (*LARGEST, few_candidates(5, interleaved)),
    "last where it ascends": ("x.amax(-1)", "x: f32[16,300]", last_where_it_ascends),
}


def refused(expression: str, inputs: str, function: Function, seeds: range) -> None:
    for seed in seeds:
        result = judged(expression, inputs, function, seed)
        assert result.verdict is Verdict.WRONG_RESULT, f"seed {seed}: {result.verdict.value}"


@pytest.mark.parametrize("name", GLANCES)
def test_a_glance_is_refused(name: str, seeds: range) -> None:
    refused(*GLANCES[name], seeds)

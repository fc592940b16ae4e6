"""Inputs that may hold a few NaN and infinities: those of which a few numbers decide few results."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.draws.locality import local_inputs
from cutegen_lab.problems import Reference
from tests.judge.test_draws import problem

ROWS, TWO = "x: f32[256,160], b: f32[160]", "x: f32[256,160], y: f32[256,160]"
LOCAL: dict[str, tuple[str, str, set[int]]] = {
    "a bias": ("x + b", ROWS, {1}),
    "a bias that is only compared": ("torch.where(x > b, x, 0.0)", ROWS, {1}),
    "a bias of scores": ("torch.softmax(x + b, -1)", ROWS, set()),
    "a bias of what is chosen": ("(x + b).argmax(-1)", ROWS, set()),
    "a weight that is summed": ("(x * b).sum(-1)", ROWS, set()),
    "two of equal shape": ("x * y", TWO, {0, 1}),
    "two whose rows are softmaxed": ("torch.softmax(x * y, -1)", TWO, {0, 1}),
    "queries and keys": ("torch.softmax(x @ y.T, -1) @ y", TWO, {0}),
    "a bias too short": ("x + b", "x: f32[256,24], b: f32[24]", set()),
    "one alone": ("torch.softmax(x, -1)", "x: f32[256,160]", set()),
}


@pytest.mark.parametrize("name", LOCAL)
def test_which_inputs_are_local(name: str) -> None:
    expression, inputs, expected = LOCAL[name]
    task = problem(expression, inputs)
    reference = Reference(task)
    assert local_inputs(reference.run, task.workload, lambda: draw(task.workload, "normal", 5)) == expected


def test_inputs_that_are_not_local_stay_finite() -> None:
    of = problem("x + b", ROWS).workload
    for seed in range(5):
        assert draw(of, "mosaic", seed)[1].isfinite().all()
        bias = draw(of, "mosaic", seed, local=frozenset({1}))[1]
        assert bias.isnan().sum() == bias.isposinf().sum() == bias.isneginf().sum() == 1


def test_every_pair_of_special_numbers_meets() -> None:
    of = problem("x * y", TWO).workload
    for seed in range(5):
        x, y = (t.flatten().tolist() for t in draw(of, "mosaic", seed, local=frozenset({0, 1})))
        met = {(str(a), str(b)) for a, b in zip(x, y, strict=True)}
        special = [str(v) for v in (0.0, -0.0, 1.0, -1.0, torch.nan, torch.inf, -torch.inf)]
        assert met.issuperset((a, b) for a in special for b in special)

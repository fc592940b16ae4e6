"""Integers with a rule are drawn by it, in every draw and in tensors for timing; and draws are of many kinds."""

from __future__ import annotations

import torch

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.judge.draws.distributions import distributions
from cutegen_lab.judge.draws.inputs import draw, fill
from cutegen_lab.problems.rules import resolved

WORKLOAD = resolved(
    Workload(
        "main",
        tuple(
            map(
                TensorSpec.parse,
                ["x: f32[40,8]", "cu: i32[6] sorted to x[0]", "pages: i32[2,4] distinct below 11", "n: i64[9] below 5"],
            )
        ),
        (),
    )
)


def follows(tensors: list[torch.Tensor]) -> bool:
    _, cu, pages, n = tensors
    rises = bool(torch.all(cu.diff() >= 0)) and cu[0] == 0 and cu[-1] == 40
    numbers = pages.reshape(-1).tolist()
    return bool(
        rises and len(set(numbers)) == 8 and 0 <= min(numbers) <= max(numbers) < 11 and n.min() >= 0 and n.max() < 5
    )


def test_every_draw_follows_the_rules() -> None:
    for seed, name in enumerate(distributions(WORKLOAD)):
        tensors = draw(WORKLOAD, name, seed)
        assert [t.dtype for t in tensors] == [torch.float32, torch.int32, torch.int32, torch.int64]
        assert follows(tensors), name
    assert follows(fill(WORKLOAD, 3))


def test_lengths_are_of_many_kinds() -> None:
    drawn = [draw(WORKLOAD, "normal", seed)[1].diff() for seed in range(60)]
    assert any(int(lengths.max()) == 40 for lengths in drawn), "one sequence with everything"
    assert any(lengths[0] == 0 and lengths[-1] == 0 for lengths in drawn), "nothing at either end"
    assert any(bool(torch.all(lengths == 8)) for lengths in drawn), "even ones"
    assert len({tuple(lengths.tolist()) for lengths in drawn}) > 30
    assert torch.equal(draw(WORKLOAD, "normal", 7)[1], draw(WORKLOAD, "normal", 7)[1])


def test_two_lengths_are_enough() -> None:
    spec = resolved(Workload("one", (TensorSpec.parse("cu: i32[2] sorted to 9"),), ()))
    assert all(draw(spec, "normal", seed)[0].tolist() == [0, 9] for seed in range(20))

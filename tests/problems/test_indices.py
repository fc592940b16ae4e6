"""Integers that index something get the range of what they index, in every workload of its own."""

from __future__ import annotations

import pytest

from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.problems import read_text


def body(expression: str, arguments: str) -> str:
    return f"def reference({arguments}):\n    return {expression}\n"


@pytest.mark.parametrize(
    ("expression", "inputs", "below", "beside"),
    [
        ("F.cross_entropy(x, t, ignore_index=2)", "x: f32[64,100], t: i64[64]", 100, (2,)),
        ("F.cross_entropy(x, t)", "x: f32[4,100,8], t: i64[4,8]", 100, (-100,)),
        ("x.gather(1, t.unsqueeze(1).long())", "x: f32[64,100], t: i32[64]", 100, ()),
        ("x[t]", "x: f32[30,100], t: i64[64]", 30, (-30, -29, -15, -2, -1)),
        ("F.embedding(torch.where(t < 0, 0, t), x)", "x: f32[30,100], t: i64[64]", 30,
         (-4294967297, -1048577, -31, -30, -29, -15, -2, -1)),
        ("F.embedding(t % 30, x)", "x: f32[30,100], t: i64[64]", 30,
         (-4294967297, -1048577, -31, -30, -29, -15, -2, -1, 30, 31, 61, 90, 1048576, 2147483648, 4294967311)),
        ("x.index_select(0, t) + x.index_select(1, t).mean()", "x: f32[100,30], t: i64[64]", 30, ()),
        (
            "torch.zeros_like(x).scatter_add_(0, t[:, None].expand(64, 100), x[:64])",
            "x: f32[70,100], t: i64[64]",
            70,
            (),
        ),
        ("torch.zeros_like(x).index_add_(0, t, x[:64])", "x: f32[70,100], t: i64[64]", 70, ()),
        ("torch.zeros_like(x).index_put_((t,), x[:64], accumulate=True)", "x: f32[70,100], t: i64[64]", 70,
         (-70, -69, -35, -2, -1)),
        ("torch.zeros_like(x).scatter_reduce(0, t, x, 'amax')", "x: f32[64], t: i64[64]", 64, ()),
        ("x.index_reduce(0, t, x[:64], 'amax')", "x: f32[70,100], t: i64[64]", 70, ()),
        ("F.embedding_bag(t, x, mode='sum')", "x: f32[30,100], t: i64[64,8]", 30, ()),
        ("x * t[:, None]", "x: f32[64,100], t: i64[64]", 0, ()),
    ],
)  # fmt: skip
def test_what_is_indexed_gives_the_range(expression: str, inputs: str, below: int, beside: tuple[int, ...]) -> None:
    problem = read_text(body(expression, "x, t"), inputs_text=inputs)
    index = problem.workload.inputs[1]
    assert (index.below, index.beside) == (below, beside)
    assert TensorSpec.from_dict(index.to_dict()) == index


def test_every_workload_has_its_own() -> None:
    problem = read_text(body("F.nll_loss(x, t)", "x, t"), inputs_text="x: f32[64,2000], t: i64[64]")
    for workload in problem.check_workloads:
        assert workload.inputs[1].below == workload.inputs[0].shape[1]
    assert {workload.inputs[1].below for workload in problem.check_workloads} >= {1, 257, 1000}


def test_a_small_workload_has_none_that_its_reference_refuses() -> None:
    """-2 % 50 is 48, of which a table of 17 knows nothing."""
    problem = read_text(body("x[t % 50]", "x, t"), inputs_text="x: f32[50], t: i64[300]")
    tables = {w.inputs[0].numel: w.inputs[1].beside for w in problem.check_workloads}
    assert min(tables) < 50 and all(-2 not in beside for size, beside in tables.items() if size < 48)
    assert {-2, 50, 101} <= {*problem.workload.inputs[1].beside}

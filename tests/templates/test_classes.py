"""Losses by class index: an indexed load beside the row's reductions, and what is folded over all rows."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.templates.frontend.reader import read
from tests.harness.checking import Compiler, compiled, judged, load_width, outputs, problem_of, read_times

LOSSES = [
    ("F.cross_entropy(x, t)", "x: f32[12,100], t: i64[12]", 2),
    ("F.cross_entropy(x, t, reduction='none')", "x: bf16[12,136], t: i64[12]", 1),
    ("F.cross_entropy(x, t, weight=w, label_smoothing=0.1, ignore_index=3)",
     "x: f32[12,100], t: i64[12], w: f32[100]", 2),
    ("F.cross_entropy(x, p, reduction='sum')", "x: f32[12,100], p: f32[12,100]", 2),
    ("(torch.logsumexp(x, -1) - x.gather(-1, t[:, None])[:, 0]).mean()", "x: f16[12,96], t: i64[12]", 2),
    ("torch.mean(1 - F.cosine_similarity(x, y))", "x: f32[12,100], y: f32[12,100]", 2),
    ("F.triplet_margin_loss(x, y, z)", "x: f32[12,100], y: f32[12,100], z: f32[12,100]", 2),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "inputs", "kernels"), LOSSES, ids=[case[0] for case in LOSSES])
def test_a_loss_is_a_row_kernel_and_one_that_adds_up_rows(
    compiler: Compiler, expression: str, inputs: str, kernels: int
) -> None:
    family, artifact = judged(compiler, problem_of(expression, inputs, checks=("prime",)))
    assert family == "row reduction" and len(artifact.builds["main"].kernels) == kernels


GATHERS = [
    ("F.embedding(t, w) * 2 + b", "t: i32[4,6], w: bf16[100,48], b: bf16[48]"),
    ("x.gather(1, t)", "x: f32[12,100], t: i64[12,8]"),
    ("F.nll_loss(x, t, reduction='none')", "x: f32[64,100], t: i64[64]"),
]


@pytest.mark.parametrize(("expression", "inputs"), GATHERS, ids=[case[0] for case in GATHERS])
def test_what_a_value_names_is_read_element_by_element_or_in_rows(
    compiler: Compiler, expression: str, inputs: str
) -> None:
    problem = problem_of(expression, inputs, checks=("prime",))
    family, artifact = judged(compiler, problem)
    assert family == "elementwise chain" and (load_width(problem, artifact) > 256) is ("embedding" in expression)


@pytest.mark.parametrize("cluster_n", [1, 2])
def test_a_row_in_steps_is_read_once(compiler: Compiler, cluster_n: int) -> None:
    problem = problem_of("F.cross_entropy(x, t)", "x: f32[3,5000], t: i64[3]", checks=())
    config = {"threads_per_row": 64, "rows_per_block": 1, "loads": 2, "cluster_n": cluster_n}
    _, artifact = judged(compiler, problem, **config)
    assert read_times(problem, artifact) < 1.1


@pytest.mark.parametrize(
    ("expression", "inputs"), [("x.sum()", "x: f32[64,1024]"), ("F.cross_entropy(x, t)", "x: f32[9,64], t: i64[9]")]
)
def test_the_second_kernel_starts_while_the_first_ends(compiler: Compiler, expression: str, inputs: str) -> None:
    _, artifact = judged(compiler, problem_of(expression, inputs, checks=()))
    first, second = artifact.builds["main"].plan.launches
    assert not first.attributes and second.attributes == {6: (1).to_bytes(4, "little")}, "programmatic"


def test_a_sum_of_exponentials_starts_from_minus_infinity(compiler: Compiler) -> None:
    problem = problem_of("torch.softmax(x, -1)", "x: f32[4,1024]", checks=())
    _, artifact = compiled(compiler, problem, threads_per_row=32, rows_per_block=1, loads=2)
    x = torch.randn(4, 1024)
    x[0, :512] = x[1, 512:] = x[2, ::3] = x[3] = -math.inf
    (got,) = outputs(problem, artifact, [x])
    torch.testing.assert_close(got, torch.softmax(x.double(), -1).float(), equal_nan=True)


def test_an_index_out_of_range_reads_nothing_beyond_the_row(compiler: Compiler) -> None:
    problem = problem_of("F.cross_entropy(x, t, reduction='none')", "x: f32[6,33], t: i64[6]", checks=())
    _, artifact = compiled(compiler, problem)
    x, t = torch.randn(6, 33), torch.tensor([0, 32, -100, 33, 1 << 40, -(1 << 40)])
    (got,) = outputs(problem, artifact, [x, t])  # the emulator faults at anything out of bounds
    torch.testing.assert_close(got, F.cross_entropy(x, t.where(t == -100, t.clamp(0, 32)), reduction="none"))


@pytest.mark.parametrize(
    ("expression", "inputs", "says"),
    [
        ("t * 2", "t: i64[12,100]", "integer input t other than as an index"),
        ("torch.where(t & 1 == 1, x, 0.0)", "x: f32[12,100], t: i64[12,100]", "__and__|integers|bits"),
        ("torch.softmax(x, -1).mean(0)", "x: f32[12,100]", "different dimensions"),
    ],
)
def test_what_is_no_index_is_named(expression: str, inputs: str, says: str) -> None:
    with pytest.raises(ProviderError, match=says):
        read(problem_of(expression, inputs))

"""What row kernels do with memory and shared memory, and that statistics in one walk are as exact as in two."""

from __future__ import annotations

import math

import pytest
import torch

from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.registry import family_for
from tests.harness.checking import Compiler, compiled, counted, judged, load_width, outputs, problem_of, read_times

LAYER_NORM = "F.layer_norm(x, w.shape, w, b)"
IN_STEPS = {"threads_per_row": 32, "rows_per_block": 1, "loads": 2}


@pytest.mark.parametrize("n", [2048, 2001])
def test_a_mean_and_the_squares_about_it_share_a_walk(compiler: Compiler, n: int) -> None:
    problem = problem_of("F.layer_norm(x, x.shape[-1:])", f"x: f32[3,{n}]", checks=())
    _, artifact = judged(compiler, problem, **IN_STEPS)
    assert 2.0 <= read_times(problem, artifact) < 2.1, "one walk reduces, one writes"
    assert load_width(problem, artifact) > 450


@pytest.mark.parametrize("config", [{}, IN_STEPS, {"threads_per_row": 64, "rows_per_block": 1, "cluster_n": 2}])
def test_a_variance_is_as_exact_as_two_walks_have_it(compiler: Compiler, config: dict[str, int]) -> None:
    problem = problem_of("torch.var(x, -1, correction=0)", "x: f32[6,3001]", checks=())
    _, artifact = compiled(compiler, problem, **config)
    x = torch.randn(6, 3001)
    x[1] += 1000  # squares of the values themselves would leave nothing of the variance
    x[2, 0] = 1e4  # nor may it hang on any one value
    x[3] = torch.linspace(0, 1e4, 3001)
    x[4, :1500] = 3e3
    x[5] = 7.3
    (got,) = outputs(problem, artifact, [x])
    torch.testing.assert_close(got[:5].double(), x[:5].double().var(-1, correction=0), rtol=1e-5, atol=0)
    assert 0 <= got[5] <= 1e-11


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("torch.var_mean(x, -1)", "x: f32[7,33]"),
        ("torch.std_mean(x, 0, correction=3, keepdim=True)", "x: f32[33,7]; x: f32[2,9]"),
        ("x.std(-1, correction=2)", "x: f16[7,33]"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
def test_a_variance_of_too_few_elements_is_none_and_their_mean_is_one(
    compiler: Compiler, expression: str, inputs: str
) -> None:
    judged(compiler, problem_of(expression, inputs, checks=("one_column", "one_row")))


@pytest.mark.parametrize(
    ("n", "threads", "waits"), [(512, 64, "registers"), (4096, 128, "shared memory"), (4098, 1024, "memory")]
)
def test_a_norms_weights_wait_where_there_is_room(compiler: Compiler, n: int, threads: int, waits: str) -> None:
    config = {"threads_per_row": threads, "rows_per_block": 1, "loads": 1 if waits == "memory" else 64}
    problem = problem_of(LAYER_NORM, f"x: bf16[6,{n}], w: bf16[{n}], b: bf16[{n}]", checks=())
    counters = counted(problem, judged(compiler, problem, **config)[1])
    assert (counters["shared_copy_requests"] > 0) is (waits == "shared memory")
    least, most = {"registers": (48, 48), "shared memory": (64, 128), "memory": (1, 16)}[waits]
    assert least <= counters["load_bytes_in_flight"] <= most, (
        "of the row, and of both weights where registers hold them"
    )


def test_blocks_of_a_cluster_take_rows_in_turn_and_read_the_weights_once(compiler: Compiler) -> None:
    problem = problem_of(LAYER_NORM, "x: f32[1030,256], w: f32[256], b: f32[256]", checks=())
    _, artifact = judged(compiler, problem, vec=4, threads_per_row=32, rows_per_block=1, cluster_n=2)
    (launch,) = artifact.builds["main"].plan.launches
    assert launch.grid == (2 * 515, 1, 1), "two rows a cluster"


def test_the_next_row_is_asked_for_while_weights_wait_in_shared_memory(compiler: Compiler) -> None:
    problem = problem_of(LAYER_NORM, "x: f32[1030,3000], w: f32[3000], b: f32[3000]", checks=())
    _, artifact = judged(compiler, problem, vec=4, threads_per_row=32, rows_per_block=1, cluster_n=2)
    (launch,) = artifact.builds["main"].plan.launches
    counters, (rows, *weights) = counted(problem, artifact), (spec.nbytes for spec in problem.workload.inputs)
    assert counters["shared_copy_requests"] > 0
    once_a_cluster = launch.grid[0] // 2 * sum(weights)
    assert counters["global_load_bytes"] == pytest.approx(rows + once_a_cluster, rel=0.01)


@pytest.mark.parametrize(
    ("expression", "inputs", "threads", "loads"),
    [
        ("torch.softmax(x, -1)", "x: bf16[1024,1024]", 128, 64),  # few short rows: more threads each
        ("torch.softmax(x, -1)", "x: bf16[65536,1024]", 32, 64),
        ("F.cross_entropy(x, t)", "x: bf16[4096,32768], t: i64[4096]", 128, 2),  # read once: small blocks, short steps
        ("F.cross_entropy(x, t)", "x: bf16[2093,128256], t: i64[2093]", 512, 2),  # fewer than are at work at a time
        ("F.cross_entropy(x, t)", "x: f32[300,32768], t: i64[300]", 512, 4),
        ("F.cross_entropy(x, t)", "x: bf16[668,50257], t: i64[668]", 256, 2),
    ],
)
def test_the_default_suits_how_many_rows_there_are(expression: str, inputs: str, threads: int, loads: int) -> None:
    problem = problem_of(expression, inputs, checks=())
    graph = read(problem)
    config = family_for(graph).default_config(graph, problem.workload)
    assert (config["threads_per_row"], config["loads"]) == (threads, loads)


ODD = [
    ("torch.softmax(x, -1)", "x: bf16[7,1001]", {}),
    ("torch.softmax(x, -1)", "x: bf16[7,1003]", {"threads_per_row": 32, "rows_per_block": 1, "loads": 2}),
    ("F.layer_norm(x, x.shape[-1:])", "x: f32[9,1023]", {"threads_per_row": 32, "rows_per_block": 2, "cluster_n": 2}),
    ("x.argmax(-1)", "x: f32[9,1022]", {}),
    ("F.cross_entropy(x, t)", "x: bf16[9,9001], t: i64[9]", {}),
]


@pytest.mark.parametrize(("expression", "inputs", "config"), ODD, ids=[case[0] for case in ODD])
def test_rows_of_odd_length_are_read_in_full_vectors(
    compiler: Compiler, expression: str, inputs: str, config: dict[str, int]
) -> None:
    problem = problem_of(expression, inputs, checks=())
    _, artifact = judged(compiler, problem, **config)
    assert load_width(problem, artifact) > 270
    if "softmax" in expression or "norm" in expression:
        assert load_width(problem, artifact, "store") > 170


def test_weights_of_a_single_row_of_odd_length_are_read_with_it(compiler: Compiler) -> None:
    judged(compiler, problem_of("torch.softmax(x, -1) * w", "x: f32[1001], w: f32[1001]", checks=()))


def test_what_shares_a_vector_with_a_row_is_not_mixed_into_it(compiler: Compiler) -> None:
    problem = problem_of("torch.softmax(x, -1)", "x: f32[6,257]", checks=())
    _, artifact = compiled(compiler, problem, threads_per_row=32, rows_per_block=2)
    x = torch.randn(6, 257)
    x[1], x[3, 0], x[4, -1] = math.nan, math.inf, -math.inf
    (got,) = outputs(problem, artifact, [x])
    torch.testing.assert_close(got, torch.softmax(x.double(), -1).float(), equal_nan=True)


@pytest.mark.parametrize("cluster_n", [1, 2])
def test_rows_of_several_warps_share_a_block(compiler: Compiler, cluster_n: int) -> None:
    problem = problem_of("torch.softmax(x, -1)", "x: f32[9,1000]", checks=())
    judged(compiler, problem, threads_per_row=64, rows_per_block=4, cluster_n=cluster_n)


@pytest.mark.parametrize("expression", ["torch.softmax(x, -1)", "torch.logsumexp(x, -1)"])
def test_a_row_in_steps_may_begin_with_minus_infinity(compiler: Compiler, expression: str) -> None:
    problem = problem_of(expression, "x: f32[6,3001]", checks=())
    _, artifact = compiled(compiler, problem, **IN_STEPS)
    x = torch.randn(6, 3001)
    x[1, :1500] = x[2, 1:] = x[3] = x[4, 1500:] = -math.inf
    x[5, :-1], x[5, -1] = -math.inf, math.nan
    (got,) = outputs(problem, artifact, [x])
    namespace = {"torch": torch, "x": x.double()}
    torch.testing.assert_close(got, eval(expression, namespace).float(), equal_nan=True)  # noqa: S307

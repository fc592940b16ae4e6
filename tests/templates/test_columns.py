"""Reductions down columns: how they walk their rows, by how many threads."""

from __future__ import annotations

import pytest

from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.registry import family_for
from tests.harness.checking import Compiler, counted, judged, problem_of

SPREAD = {"slices": 32, "cluster_m": 4, "loads": 8}


@pytest.mark.parametrize("rows", [4096, 4196])
@pytest.mark.parametrize("reduction", ["sum", "amax"])
def test_a_batch_is_loaded_at_once(compiler: Compiler, rows: int, reduction: str) -> None:
    """Eight vectors of 8 bytes: no branch is among the loads of whole batches."""
    problem = problem_of(f"x.{reduction}(0)", f"x: bf16[{rows},64]", checks=())
    family, artifact = judged(compiler, problem, **SPREAD)
    assert family == "column reduction" and 62 < counted(problem, artifact)["load_bytes_in_flight"] <= 64


def test_what_varies_down_the_columns_is_written_past_whole_batches(compiler: Compiler) -> None:
    problem = problem_of("torch.softmax(x, 0)", "x: f32[1100,40]", checks=())
    assert judged(compiler, problem, **SPREAD)[0] == "column reduction"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(2048, (32, 4, 8)), (6554, (32, 4, 4)), (65536, (16, 8, 2))],
)
def test_long_walks_have_more_blocks_and_fewer_loads(rows: int, expected: tuple[int, int, int]) -> None:
    problem = problem_of("x.sum(0)", f"x: bf16[{rows},8192]", checks=())
    graph = read(problem)
    config = family_for(graph).default_config(graph, problem.workload)
    assert (config["slices"], config["cluster_m"], config["loads"]) == expected

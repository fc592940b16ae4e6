"""Products with few rows: every layout, dtype and kind of epilogue, ragged shapes and configs, against float64."""

from __future__ import annotations

from typing import Any

import pytest

from cutegen_lab.templates.families import gemm, skinny
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.recognise import template_for
from tests.harness.checking import ROUNDING, Compiler, error_of, passed, problem_of, product_of
from tests.harness.exported import constraints_of

FAMILY = skinny.FAMILY
SMALL = {"rows": 2, "threads_n": 8, "threads_k": 8, "loads": 2, "cluster_k": 1}


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("a @ v", "a: bf16[70,264], v: bf16[264]"),
        ("F.gelu(F.linear(x, w, bias))", "x: bf16[3,96], w: bf16[72,96], bias: bf16[72]"),
        ("x @ w + r", "x: f32[5,67], w: f32[67,71], r: f32[5,71]"),
        ("a @ b", "a: f16[75,72], b: f16[72,4]"),
        ("(a @ b).T * s[:, None]", "a: bf16[72,40], b: bf16[40,3], s: bf16[3]"),
        ("torch.bmm(a, b)", "a: bf16[3,1,100], b: bf16[3,100,67]"),
        ("x @ w.T", "x: bf16[4,40]:(48,1), w: bf16[72,40]:(1,72)"),
        ("F.silu(x @ g.T) * (x @ u.T)", "x: bf16[4,72], g: bf16[56,72], u: bf16[56,72]"),
        ("x @ w + y @ v.T", "x: bf16[2,40], w: bf16[40,72], y: bf16[2,24], v: bf16[72,24]"),
    ],
)  # fmt: skip
def test_layouts_batches_and_epilogues(compiler: Compiler, expression: str, inputs: str) -> None:
    problem = product_of(expression, inputs)
    error, _ = error_of(compiler, FAMILY, problem, SMALL)
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value]


@pytest.mark.parametrize(
    ("expression", "config"),
    [
        ("x @ w.T", {"rows": 2, "threads_n": 2, "threads_k": 64, "loads": 1, "cluster_k": 1}),
        ("x @ w", {"rows": 8, "threads_n": 16, "threads_k": 8, "loads": 1, "cluster_k": 1}),
        ("x @ w", {"rows": 1, "threads_n": 8, "threads_k": 8, "loads": 1, "cluster_k": 4}),
    ],
)
def test_other_configs_are_right_too(compiler: Compiler, expression: str, config: dict[str, Any]) -> None:
    """Of more few rows than a block takes."""
    problem = product_of(expression, "x: bf16[19,208], w: bf16[208,208]")
    error, _ = error_of(compiler, FAMILY, problem, config)
    assert error < ROUNDING["bf16"]


@pytest.mark.parametrize(
    ("inputs", "arch", "family"),
    [
        ("x: bf16[16,512], w: bf16[512,4096]", "sm_90a", skinny.NAME),
        ("x: bf16[4096,512], w: bf16[512,1]", "sm_80", skinny.NAME),
        ("x: f32[16,512], w: f32[512,4096]", "sm_90a", skinny.NAME),
        ("x: bf16[17,512], w: bf16[512,4096]", "sm_90a", gemm.NAME),
    ],
)
def test_it_is_chosen_while_memory_bounds_the_product(inputs: str, arch: str, family: str) -> None:
    template = template_for(product_of("x @ w", inputs), arch)
    assert template.name == family and template.feasible(template.default_config())


def test_the_judge_passes_the_default_on_every_workload(compiler: Compiler) -> None:
    """Derived ones have more rows than the problem's, and sizes that no vector divides."""
    problem = problem_of("torch.relu(x @ w)", "x: bf16[4,4096], w: bf16[4096,264]", checks=("prime", "tiles"))
    assert template_for(problem, "sm_90a").default_config()["cluster_k"] == 8
    template = template_for(problem, "sm_80")
    config = template.default_config()
    assert config["cluster_k"] == 1
    passed(compiler, problem, template.write(config), "sm_80")


def test_what_is_infeasible_is_told() -> None:
    problem = product_of("x @ w", "x: bf16[8,64], w: bf16[64,512]")
    graph = read(problem)
    constraints = constraints_of(skinny.write(problem, graph, SMALL))
    assert not skinny.why_not(graph, SMALL) and constraints(SMALL, problem.workload, None)
    for changed, says in (
        ({"threads_n": 1}, "8 threads in a block (must be a multiple of 32"),
        ({"rows": 8, "loads": 4}, "32 vectors in flight in a thread's registers (at most 16)"),
        ({"threads_n": 32, "threads_k": 32, "rows": 8}, "shared memory (at most 65,536)"),
    ):
        config = {**SMALL, **changed}
        assert says in skinny.why_not(graph, config) and not constraints(config, problem.workload, None)

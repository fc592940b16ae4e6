"""Products on GPUs before Hopper: every layout, dtype and kind of epilogue, ragged shapes, against float64."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.templates.families import mma
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.recognise import template_for
from tests.harness.checking import ROUNDING, Compiler, error_of, passed, problem_of, product_of, result_of
from tests.harness.exported import constraints_of

FAMILY = mma.family(target_gpu("sm_80"))
SMALL = {"tile_m": 64, "tile_n": 32, "tile_k": 32, "stages": 3, "warps_m": 2, "warps_n": 1, "raster": "m", "group": 8,
         "split_k": 1}  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("a @ b", "a: f16[72,104], b: f16[104,136]"),
        ("F.gelu(a @ b.T + c)", "a: bf16[72,104], b: bf16[136,104], c: bf16[136]"),
        ("a.T @ b.T", "a: bf16[104,72], b: bf16[40,104]"),
        ("(torch.bmm(a, b) + r).float()", "a: bf16[3,20,104], b: bf16[3,104,36], r: f32[3,20,36]"),
        ("a @ b", "a: bf16[37,67], b: bf16[67,35]"),
        ("F.silu(x @ g.T) * (x @ u.T)", "x: bf16[72,72], g: bf16[40,72], u: bf16[40,72]"),
        ("a @ b.T", "a: f32[40,100], b: f32[36,100]"),
        ("x @ w + y @ v", "x: bf16[40,64], w: bf16[64,40], y: bf16[40,24], v: bf16[24,40]"),
    ],
    ids=["nn", "nt", "tt", "batches", "odd pitches", "SwiGLU", "fp32", "two lengths"],
)
def test_layouts_dtypes_and_epilogues(compiler: Compiler, expression: str, inputs: str) -> None:
    problem = product_of(expression, inputs)
    error, ran = error_of(compiler, FAMILY, problem, SMALL, "sm_80")
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value]
    assert ("plain_kernel" if "y @ v" in expression else "mma_kernel") in ran


@pytest.mark.parametrize(
    "config",
    [
        {"tile_m": 128, "tile_n": 64, "tile_k": 64, "stages": 2, "warps_m": 2, "warps_n": 2, "raster": "n"},
        {"tile_m": 16, "tile_n": 64, "stages": 6, "warps_m": 1, "warps_n": 4, "split_k": 4, "group": 1},
    ],
)
def test_other_configs_are_right_too(compiler: Compiler, config: dict[str, Any]) -> None:
    problem = product_of("torch.relu(a @ b)", "a: bf16[136,264], b: bf16[264,72]")
    error, ran = error_of(compiler, FAMILY, problem, {**SMALL, **config}, "sm_80")
    assert error < ROUNDING["bf16"] and ("total_kernel" in ran) == ("split_k" in config)


def test_halves_of_fp32_are_as_exact_as_fp32(compiler: Compiler) -> None:
    """Numbers of every size, and what is not finite, come out as fp32's own products do."""
    problem = product_of("a @ b", "a: f32[32,300], b: f32[300,32]")
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(spec.shape, generator=generator) for spec in problem.workload.inputs)
    a[1] *= 1e25
    a[2] = 0.0
    a[3] *= torch.exp2(-torch.arange(300) % 20.0)
    a[8, 7], a[9, 7], b[3, 10] = math.inf, math.nan, -math.inf
    config = {**SMALL, "tile_m": 32, "warps_m": 1}
    got, _ = result_of(compiler, FAMILY, problem, config, [a, b], "sm_80")
    own, expected = a @ b, a.double() @ b.double()
    assert torch.equal(got.isnan(), own.isnan()) and torch.equal(got[got.isinf()], own[own.isinf()])
    finite, size = own.isfinite(), a.double().abs() @ b.double().abs() + 1e-37
    mine, theirs = (((x.double() - expected).abs() / size)[finite] for x in (got, own))
    assert mine.max() < max(1.5 * float(theirs.max()), 2.0**-22)


def test_the_judge_passes_the_default(compiler: Compiler) -> None:
    problem = problem_of("F.relu(F.linear(x, w))", "x: bf16[300,264], w: bf16[520,264]", checks=("tiles",))
    template = template_for(problem, "sm_80")
    assert template.name == FAMILY.name
    passed(compiler, problem, template.write(template.default_config()), "sm_80")


def test_what_is_infeasible_is_told() -> None:
    problem = product_of("x @ w", "x: bf16[2048,64], w: bf16[64,2048]")
    graph = read(problem)
    constraints = constraints_of(FAMILY.write(problem, graph, SMALL))
    assert not FAMILY.why_not(graph, SMALL) and constraints(SMALL, problem.workload, None)
    for changed, says in (
        ({"tile_m": 16}, "warps_m of 2 need at least 16 each, more than tile_m of 16"),
        ({"tile_m": 256, "tile_n": 128}, "512 accumulators in a thread's registers (at most 128)"),
        ({"tile_m": 128, "tile_n": 256, "tile_k": 64, "stages": 4, "warps_m": 4, "warps_n": 4},
         "196,608 bytes of shared memory (at most 166,912)"),
        ({"split_k": 4}, "split_k of 4 with 2048 tiles: 8192 blocks (at most 432)"),
    ):  # fmt: skip
        config = {**SMALL, **changed}
        assert says in FAMILY.why_not(graph, config) and not constraints(config, problem.workload, None)

"""Products of fp32 operands in TF32, for problems that ask for it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from cutegen_lab.bench import case
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import GPUS, speed_of_light, target_gpu
from cutegen_lab.templates.families import gemm, mma, tf32
from cutegen_lab.templates.families.gemm.shape import products
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.registry import family_for
from tests.harness.checking import ROUNDING, Compiler, error_of, judged

SMALL = {"tile_m": 64, "tile_n": 64, "tile_k": 32, "stages": 3, "cluster_m": 1, "cluster_n": 1,
         "schedule": "cooperative", "raster": "m", "group": 8, "split_k": 1}  # fmt: skip
LEAST, MOST = 2e-4, 5e-4  # what rounding both operands to nearest gives is 2.9e-4, and 4.2e-4 for two products' product
COPIED = "convert_kernel"


def problem_of(expression: str, inputs: str) -> Problem:
    return case.problem_of("product", expression, inputs, tf32=True)


@pytest.mark.parametrize(
    ("expression", "inputs", "config", "copied"),
    [
        ("F.relu(F.linear(a, b, s))", "a: f32[72,100], b: f32[136,100], s: f32[136]", {"tile_k": 64}, False),
        ("a.T @ b.T + r", "a: f32[99,72], b: f32[136,99], r: f32[72,136]", {"tile_m": 128, "cluster_m": 2}, True),
        ("F.linear(x, g) * F.linear(x, u)", "x: f32[72,96], g: f32[80,96], u: f32[80,96]", {}, False),
        ("torch.bmm(a, b)", "a: f32[2,72,96], b: f32[2,96,80]", {"split_k": 2}, True),
    ],
    ids=["linear", "odd pitches", "gated", "batched, in parts"],
)
def test_tensor_cores_multiply_rounded_operands(
    compiler: Compiler, expression: str, inputs: str, config: dict[str, Any], copied: bool
) -> None:
    problem = problem_of(expression, inputs)
    assert family_for(read(problem)) is tf32.FAMILY
    error, ran = error_of(compiler, tf32.FAMILY, problem, {**SMALL, **config})
    assert LEAST < error < MOST and "gemm_kernel" in ran and (COPIED in ran) == copied


def test_elsewhere_their_halves_are_multiplied(compiler: Compiler) -> None:
    problem = replace(problem_of("F.linear(a, b)", "a: f32[72,96], b: f32[136,96]"), tf32=False)
    assert family_for(read(problem)) is gemm.FAMILY
    error, _ = error_of(compiler, gemm.FAMILY, problem, {**SMALL, "tile_k": 64})
    assert error < ROUNDING["f32"]


def test_before_hopper_too(compiler: Compiler) -> None:
    problem = problem_of("a @ b + 1", "a: f32[40,67], b: f32[67,72]")
    family = mma.family(target_gpu("sm_80"))
    config = family.default_config(read(problem), problem.workload)
    error, ran = error_of(compiler, family, problem, config, "sm_80")
    assert LEAST < error < MOST and "mma_kernel" in ran


def test_the_default_passes_the_judge(compiler: Compiler) -> None:
    problem = problem_of("F.linear(a, b)", "a: f32[72,96], b: f32[136,96]")
    tail = tuple(w for w in problem.check_workloads if w.name == "tail")
    family, _ = judged(compiler, replace(problem, check_workloads=tail))
    assert family == tf32.NAME


def test_defaults_are_within_their_domains() -> None:
    for m, n, k in itertools.product((64, 4096), (64, 8192), (8192,)):
        problem = problem_of("F.linear(a, b)", f"a: f32[{m},{k}], b: f32[{n},{k}]")
        graph = read(replace(problem, check_workloads=()))
        config = tf32.default_config(graph, problem.workload)
        assert not tf32.why_not(graph, config) and all(config[name] in tf32.DOMAINS[name] for name in tf32.DOMAINS)


def test_steps_are_as_long_as_rows_of_shared_memory() -> None:
    graph = read(problem_of("F.linear(a, b)", "a: f32[64,64], b: f32[64,64]"))
    found = products(graph)
    assert found is not None and (found.tf32, found.sums, found.itemsize) == (True, 1, 4)
    assert "tile_k of 128 (must be 32 or 64 for TF32)" in tf32.why_not(graph, {**SMALL, "tile_k": 128})


def test_the_bound_is_that_of_tensor_cores() -> None:
    asks = problem_of("F.linear(a, b)", "a: f32[4096,4096], b: f32[4096,4096]")
    bound, plain = (speed_of_light(p, GPUS["H200"]) for p in (asks, replace(asks, tf32=False)))
    assert bound.time_us == pytest.approx(2 * 4096**3 / 494.5e12 * 1e6) and plain.time_us == pytest.approx(
        1.5 * bound.time_us
    )

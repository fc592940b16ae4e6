"""Matrices that the epilogue reads come ahead of it, through the pipeline that brings the operands."""

from __future__ import annotations

from typing import Any

import pytest

from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.families import gemm
from cutegen_lab.templates.frontend.reader import read
from tests.harness.checking import ROUNDING, Compiler, built, error_of, product_of

SMALL = {"tile_m": 64, "tile_n": 64, "tile_k": 64, "stages": 3, "cluster_m": 1, "cluster_n": 1,
         "schedule": "cooperative", "raster": "m", "group": 8, "split_k": 1}  # fmt: skip
DESCRIPTOR_BYTES = 128  # of a tensor map, as a kernel's parameter


def by_descriptor(compiler: Compiler, problem: Problem, config: dict[str, Any]) -> set[str]:
    """The inputs that the kernel reads by TMA."""
    source = gemm.write(problem, read(problem), config)
    build = built(compiler, source, [problem.workload]).builds[problem.workload.name]
    sizes = {kernel.name: kernel.param_sizes for kernel in build.kernels}
    return {
        problem.workload.tensors[where.tensor].name
        for launch in build.plan.launches
        for where in launch.relocations
        if sizes[launch.kernel][where.param] == DESCRIPTOR_BYTES and where.tensor < len(problem.workload.inputs)
    }


BOTH = "F.silu(a @ b) * g + r"
MATRICES = "a: bf16[200,136], b: bf16[136,264], g: bf16[200,264], r: bf16[200,264]"


@pytest.mark.parametrize(
    ("expression", "inputs", "config"),
    [
        ("a @ b + r", "a: bf16[200,136], b: bf16[136,264], r: f32[200,264]", {"tile_m": 128, "tile_n": 192}),
        ("a @ b + r", "a: f16[200,136], b: f16[136,264], r: f16[200,264]", {"tile_m": 128, "tile_n": 256}),
        (BOTH, MATRICES, {"tile_m": 256, "tile_n": 128, "stages": 2, "cluster_n": 2}),
        ("a @ b + r", "a: bf16[768,256], b: bf16[256,768], r: bf16[768,768]", {"stages": 2}),
        ("torch.baddbmm(r, a, b)", "r: bf16[3,40,72], a: bf16[3,40,64], b: bf16[3,64,72]", {}),
        ("torch.bmm(a, b) + r", "a: bf16[3,40,64], b: bf16[3,64,72], r: bf16[40,72]", {"cluster_m": 2}),
        ("(x @ g) * (x @ u) + r", "x: bf16[136,72], g: bf16[72,200], u: bf16[72,200], r: bf16[136,200]", {}),
        ("a @ b + r", "a: f32[200,136], b: f32[136,200], r: f32[200,200]", {"tile_n": 128}),
    ],
    ids=["fp32", "fp16", "two, in pairs of blocks", "many tiles", "batches", "one for all batches",
         "two products", "of fp32 halves"],
)  # fmt: skip
def test_what_is_as_large_as_the_result_comes_ahead(
    compiler: Compiler, expression: str, inputs: str, config: dict[str, Any]
) -> None:
    problem, config = product_of(expression, inputs), {**SMALL, **config}
    error, _ = error_of(compiler, gemm.FAMILY, problem, config)
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value]
    assert {"r", *({"g"} if "* g" in expression else ())} <= by_descriptor(compiler, problem, config)


@pytest.mark.parametrize(
    ("expression", "inputs", "config"),
    [
        ("a @ b.T + r", "a: bf16[72,64], b: bf16[67,64], r: bf16[72,67]", {}),
        ("a @ b + r", "a: bf16[72,64], b: bf16[64,72], r: bf16[72]", {}),
        ("a @ b + r[:, None]", "a: bf16[72,64], b: bf16[64,72], r: bf16[72]", {}),
        (BOTH, MATRICES, {"tile_m": 128, "tile_n": 128, "stages": 2, "schedule": "pingpong"}),
        (
            "(a @ b + r) * p - q",
            "a: bf16[72,64], b: bf16[64,72], r: bf16[72,72], p: bf16[72,72], q: bf16[72,72]",
            {"stages": 2},
        ),
        ("a @ b + r", "a: bf16[72,264], b: bf16[264,72], r: bf16[72,72]", {"split_k": 2}),
    ],
    ids=["odd pitches", "a row", "a column", "for two teams", "more than the stages hold", "added up from parts"],
)
def test_the_epilogue_loads_what_cannot(
    compiler: Compiler, expression: str, inputs: str, config: dict[str, Any]
) -> None:
    problem, config = product_of(expression, inputs), {**SMALL, **config}
    error, ran = error_of(compiler, gemm.FAMILY, problem, config)
    assert error < ROUNDING["bf16"] and "gemm_kernel" in ran
    assert "r" not in by_descriptor(compiler, problem, config)

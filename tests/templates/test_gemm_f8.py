"""Products of 8-bit floating-point numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.templates.families import gemm
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.recognise import template_for
from cutegen_lab.templates.registry import family_for
from tests.harness.checking import ROUNDING, Compiler, error_of, judged, problem_of, product_of, result_of

SMALL = {"tile_m": 64, "tile_n": 64, "tile_k": 128, "stages": 3, "cluster_m": 1, "cluster_n": 1,
         "schedule": "cooperative", "raster": "m", "group": 8, "split_k": 1}  # fmt: skip


PRODUCT = "(a.float() @ b.float().T)"
LONG = "a: f8e4m3fn[72,1024], b: f8e4m3fn[136,1024]"


@pytest.mark.parametrize(
    ("expression", "inputs", "config"),
    [
        (f"({PRODUCT} * sa * sb).bfloat16()", f"{LONG}, sa: f32[1], sb: f32[1]", {}),
        (f"({PRODUCT} * sa * sb).bfloat16()", "a: f8e4m3fn[72,256], b: f8e5m2[136,256], sa: f32[72,1], sb: f32[136]",
         {"tile_m": 128, "tile_n": 128, "cluster_m": 2}),
        (f"({PRODUCT} + r).bfloat16()", "a: f8e5m2[200,272], b: f8e4m3fn[264,272], r: bf16[200,264]",
         {"tile_m": 128, "tile_n": 192}),
        ("(F.silu(a.float() @ g.float().T) * (a.float() @ u.float().T)).bfloat16()",
         "a: f8e5m2[136,128], g: f8e5m2[136,128], u: f8e5m2[136,128]", {"tile_m": 128}),
        ("torch.bmm(a.float(), b.float().mT).bfloat16()", "a: f8e4m3fn[2,40,256], b: f8e4m3fn[2,72,256]",
         {"split_k": 2}),
    ],
    ids=["numbers", "rows and columns", "a residual", "gated", "in parts"],
)  # fmt: skip
def test_tensor_cores_multiply_8_bits(compiler: Compiler, expression: str, inputs: str, config: dict[str, Any]) -> None:
    problem = product_of(expression, inputs)
    error, ran = error_of(compiler, gemm.FAMILY, problem, {**SMALL, **config})
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value]
    assert "gemm_kernel" in ran and "convert_kernel" not in ran


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("(a.float() @ b.float()).bfloat16()", "a: f8e4m3fn[72,272], b: f8e4m3fn[272,136]"),
        ("(a.float().T @ b.float()).bfloat16()", "a: f8e5m2[203,72], b: f8e4m3fn[203,136]"),
        (PRODUCT, LONG),
        ("a.float() @ b.float()", "a: f8e4m3fn[72,267], b: f8e5m2[267,136]"),
        (f"{PRODUCT}.half()", "a: f8e4m3fn[72,256], b: f8e5m2[136,256]"),
    ],
    ids=["dense along n", "odd pitches", "fp32 results", "fp32 results, odd pitches", "fp16 results"],
)
def test_what_wgmma_does_not_take_is_copied(compiler: Compiler, expression: str, inputs: str) -> None:
    """Along k, which is how it reads 8-bit numbers; as fp16, where results are finer than bf16."""
    problem = product_of(expression, inputs)
    error, ran = error_of(compiler, gemm.FAMILY, problem, SMALL)
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value]
    assert "gemm_kernel" in ran and "convert_kernel" in ran


def test_small_products_need_no_copies(compiler: Compiler) -> None:
    error, ran = error_of(
        compiler, gemm, product_of("a.float() @ b.float()", "a: f8e4m3fn[40,67], b: f8e5m2[67,35]"), SMALL
    )
    assert error < ROUNDING["f32"] and "plain_kernel" in ran


def test_long_sums_are_promoted(compiler: Compiler) -> None:
    """Of numbers of one sign: wgmma alone adds up 7% too little here."""
    problem = product_of(f"{PRODUCT}.bfloat16()", "a: f8e4m3fn[64,4096], b: f8e4m3fn[64,4096]")
    a, b = (torch.rand(64, 4096).to(torch.float8_e4m3fn) for _ in range(2))
    result, _ = result_of(compiler, gemm.FAMILY, problem, SMALL, [a, b])
    apart = (result.double() / (a.double() @ b.double().T) - 1).abs()
    assert float(apart.max()) < 2.0**-8 + 2.0**-10


def test_the_default_passes_the_judge(compiler: Compiler) -> None:
    inputs = "a: f8e4m3fn[80,160], b: f8e4m3fn[96,160], sa: f32[1], sb: f32[1]"
    expression = "torch._scaled_mm(a, b.T, sa, sb, out_dtype=torch.bfloat16)"
    family, _ = judged(compiler, problem_of(expression, inputs, checks=("tail",)))
    assert family == gemm.NAME


@pytest.mark.parametrize(
    ("expression", "inputs", "says"),
    [
        ("a.float() @ b.float()", "a: f8e4m3fn[64,64], b: bf16[64,64]", "a matrix product of f8e4m3fn and bf16"),
        ("a.float() * 2", "a: f8e4m3fn[64,64]", "of dtype f8e4m3fn other than as an operand of a matrix product"),
    ],
)  # fmt: skip
def test_what_it_cannot_serve_is_named(expression: str, inputs: str, says: str) -> None:
    with pytest.raises(ProviderError, match=says):
        family_for(read(product_of(expression, inputs)))


def test_other_archs_have_none() -> None:
    problem = product_of(f"{PRODUCT}.bfloat16()", LONG)
    says = r"a matrix product of 8-bit floats on sm_80, but one does on sm_90a\. Use another arch: sm_90a"
    with pytest.raises(ProviderError, match=says):
        family_for(read(problem), "sm_80")
    with pytest.raises(ProviderError, match=says):  # though there are casts that might be kernels of their own
        template_for(problem, "sm_80")

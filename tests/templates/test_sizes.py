"""Constants that follow from the shape: a kernel of every kind has them as each workload does, those of one too."""

from __future__ import annotations

from typing import Any

import pytest

from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.templates.frontend.shape_exprs import ShapeExpr, fitted_power, perhaps_of_shape
from cutegen_lab.templates.recognise import template_for
from tests.harness.checking import Compiler, judged, passed, problem_of

GEMM = {"tile_m": 64, "tile_n": 64, "tile_k": 64, "stages": 3, "cluster_m": 1, "cluster_n": 1, "raster": "m"}


@pytest.mark.parametrize(
    ("expression", "inputs", "family"),
    [
        ("x / math.sqrt(x.shape[-1])", "x: f32[33,100]", "elementwise chain"),
        ("x.sum(-1) / x.shape[-1]", "x: f32[33,100]", "row reduction"),
        ("x * x.shape[-1] ** -0.5 + x.sum(0)", "x: f32[33,64]", "column reduction"),
        ("(x / x.shape[-1] ** 0.5).cumsum(-1)", "x: f32[5,64]", "row scan"),
        ("(x / x.shape[-1] ** 0.5).cumsum(0)", "x: f32[5,64]", "column scan"),
        ("(x / x.shape[-1] ** 0.5).sum()", "x: bf16[33,1000]", "total"),
        ("F.linear(x, w) * x.shape[-1] ** -0.5", "x: bf16[1,64], w: bf16[72,64]", "product with few rows"),
        ("F.linear(x, w) * x.shape[-1] ** -0.5", "x: bf16[72,64], w: bf16[1,64]", "product with few rows"),
    ],
)
def test_one_column_has_its_own(compiler: Compiler, expression: str, inputs: str, family: str) -> None:
    problem = problem_of(expression, inputs, checks=("one_column", "tail"))
    assert judged(compiler, problem)[0] == family


@pytest.mark.parametrize(
    ("expression", "inputs", "config"),
    [
        ("F.linear(x, w) * x.shape[-1] ** -0.5", "x: bf16[40,264], w: bf16[72,264]", {}),
        ("F.linear(x, w, b) * x.shape[-1] ** -0.5", "x: bf16[40,264], w: bf16[72,264], b: bf16[72]", {"split_k": 2}),
        ("torch.softmax(F.linear(x, w) * x.shape[-1] ** -0.5, -1)", "x: bf16[40,144], w: bf16[200,144]",
         {"cluster_n": 4}),
        ("(F.linear(x, w) * x.shape[-1] ** -0.5).float().logsumexp(-1)", "x: bf16[40,144], w: bf16[200,144]", {}),
    ],
    ids=["a tile by itself", "parts along k", "rows of a cluster", "rows in parts"],
)  # fmt: skip
def test_an_epilogue_has_them(compiler: Compiler, expression: str, inputs: str, config: dict[str, Any]) -> None:
    judged(compiler, problem_of(expression, inputs, checks=("one_column", "tiles")), **{**GEMM, **config})


@pytest.mark.parametrize(
    ("expression", "inputs", "arch"),
    [
        ("torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v",
         "q: f32[2,9,16], k: f32[2,11,16], v: f32[2,11,16]", "sm_90a"),
        ("torch.softmax((q @ k.mT).float() * q.shape[-1] ** -0.5, -1).to(q.dtype) @ v",
         "q: bf16[2,40,64], k: bf16[2,48,64], v: bf16[2,48,64]", "sm_80"),
    ],
)  # fmt: skip
def test_attention_scales_by_the_length_of_its_heads(
    compiler: Compiler, expression: str, inputs: str, arch: str
) -> None:
    problem = problem_of(expression, inputs, checks=("one_column",))
    template = template_for(problem, arch)
    artifact = passed(compiler, problem, template.write(template.default_config()), arch)
    assert len(artifact.builds) == 2


@pytest.mark.parametrize("length", [64, 300])  # what workloads keep of it, and what they shorten
def test_fused_attention_is_read_with_the_length_of_its_heads(length: int) -> None:
    tensors = ", ".join(f"{name}: bf16[1,2,40,{length}]" for name in "qkv")
    problem = problem_of("F.scaled_dot_product_attention(q, k, v)", tensors, checks=("one_column", "prime"))
    template = template_for(problem, "sm_90a")
    assert "= (q.shape[3]) ** -0.5" in template.write(template.default_config())


def test_a_number_that_is_no_size_stays_one(compiler: Compiler) -> None:
    problem = problem_of("x @ w / 8.0", "x: bf16[40,64], w: bf16[64,72]", checks=("one_column",))
    template = template_for(problem, "sm_90a")
    source = template.write(template.default_config())
    assert "size" not in source.split("def epilogue")[1].split("return")[0]
    passed(compiler, problem, source)


def test_powers_of_sizes_are_found_from_what_fits_every_workload() -> None:
    def of(*shape: int) -> Workload:
        return Workload("w", (TensorSpec.parse(f"x: f32[{','.join(map(str, shape))}]"),), ())

    main, thin = of(33, 64), of(33, 1)
    cases = [((64.0, 1.0), 1.0), ((8.0, 1.0), 0.5), ((0.125, 1.0), -0.5), ((1 / 64, 1.0), -1.0)]
    for (first, second), power in cases:
        assert perhaps_of_shape(first, main)
        assert fitted_power([(main, first), (thin, second)]) == (ShapeExpr(0, 1), power)
    assert fitted_power([(main, 31.0), (of(17, 64), 15.0)]) == (ShapeExpr(0, 0, plus=-2), 1.0)
    assert fitted_power([(main, 0.3), (thin, 0.4)]) is None
    assert not perhaps_of_shape(0.3, main) and not perhaps_of_shape(-1.0, main)

"""The GEMM family: every layout, dtype and kind of epilogue, ragged shapes and configs, against float64."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.families import gemm
from cutegen_lab.templates.families.gemm.config import DOMAINS, stages_that_fit
from cutegen_lab.templates.families.gemm.shape import products
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.registry import family_for
from tests.harness import checking
from tests.harness.checking import ROUNDING, Compiler, judged, product_of
from tests.harness.exported import constraints_of

SMALL = {"tile_m": 64, "tile_n": 64, "tile_k": 64, "stages": 3, "cluster_m": 1, "cluster_n": 1,
         "schedule": "cooperative", "raster": "m", "group": 8, "split_k": 1}  # fmt: skip


def result_of(
    compiler: Compiler, problem: Problem, config: dict[str, Any], given: list[torch.Tensor]
) -> tuple[torch.Tensor, str]:
    return checking.result_of(compiler, gemm.FAMILY, problem, {**SMALL, **config}, given)


def error_of(compiler: Compiler, problem: Problem, config: dict[str, Any]) -> tuple[float, str]:
    return checking.error_of(compiler, gemm.FAMILY, problem, {**SMALL, **config})


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("a @ b", "a: f16[72,104], b: f16[104,136]"),
        ("a @ b.T", "a: bf16[72,104], b: bf16[136,104]"),
        ("torch.mm(a.T, b)", "a: bf16[104,72], b: bf16[104,136]"),
        ("a.T @ b.T", "a: f16[104,72], b: f16[136,104]"),
        ("(a @ b).T", "a: bf16[72,104], b: bf16[104,136]"),
        ("a @ b", "a: bf16[72,104]:(1,72), b: bf16[104,136]:(144,1)"),
    ],
    ids=["nn", "nt", "tn", "tt", "transposed result", "strides"],
)
def test_every_layout_goes_through_the_tensor_cores(compiler: Compiler, expression: str, inputs: str) -> None:
    problem = product_of(expression, inputs)
    error, kernel = error_of(compiler, problem, {})
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value] and "gemm_kernel" in kernel


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("F.gelu(F.linear(x, w, bias))", "x: bf16[3,40,64], w: bf16[72,64], bias: bf16[72]"),
        ("torch.relu(a @ b + m[:, None]) * 0.5 + r", "a: bf16[72,64], b: bf16[64,88], m: bf16[72], r: bf16[72,88]"),
        ("torch.addmm(c, a, b, beta=0.5, alpha=2.0).clamp(-1, 1)", "c: bf16[72], a: bf16[80,64], b: bf16[64,72]"),
        ("F.silu(a @ b) * g", "a: bf16[72,64], b: bf16[64,88], g: bf16[72,88]"),
        ("(a @ b).float() * s", "a: bf16[72,64], b: bf16[64,88], s: f32[1]"),
        ("(a @ b + r).float()", "a: bf16[72,64], b: bf16[64,83], r: f32[72,83]"),
        ("a @ b + a", "a: bf16[64,64], b: bf16[64,64]"),
        ("torch.baddbmm(c, a, b)", "c: bf16[72], a: bf16[3,40,64], b: bf16[3,64,72]"),
    ],
)  # fmt: skip
def test_epilogues_are_applied_in_fp32(compiler: Compiler, expression: str, inputs: str) -> None:
    problem = product_of(expression, inputs)
    error, _ = error_of(compiler, problem, {"tile_m": 128})
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value]


@pytest.mark.parametrize(
    ("expression", "inputs", "kernel"),
    [
        ("torch.bmm(a, b)", "a: bf16[3,40,64], b: bf16[3,64,72]", "gemm_kernel"),
        ("a @ b", "a: bf16[2,3,40,64], b: bf16[64,72]", "gemm_kernel"),
        ("a @ b", "a: bf16[40,64], b: bf16[3,64,72]", "gemm_kernel"),
        ("torch.einsum('bijl,lk->bijk', a, b)", "a: bf16[2,3,24,64], b: bf16[64,72]", "gemm_kernel"),
        ("torch.einsum('nd,bhmd->bhnm', a, b)", "a: bf16[40,64], b: bf16[2,3,24,64]", "gemm_kernel"),
        ("a @ v", "a: bf16[40,64], v: bf16[64]", "gemm_kernel"),
        ("v @ a", "v: bf16[64], a: bf16[64,40]", "gemm_kernel"),
        ("a @ b", "a: bf16[77,1], b: bf16[1,72]", "gemm_kernel"),
        ("a @ b.T", "a: bf16[1,64], b: bf16[67,64]", "gemm_kernel"),
        ("a @ b", "a: bf16[1,1], b: bf16[1,1]", "gemm_kernel"),
        ("a @ b", "a: bf16[57,67], b: bf16[67,65]", "plain_kernel"),
        ("a @ b", "a: f32[57,64], b: f32[64,71]", "plain_kernel"),
        ("torch.bmm(a, b).transpose(1, 2) + a.transpose(1, 2)", "a: f32[3,40,40], b: f32[3,40,40]", "plain_kernel"),
        ("(a @ b) * (a @ b.T)", "a: bf16[40,64], b: bf16[64,64]", "plain_kernel"),
        ("x @ w + y @ v", "x: bf16[40,64], w: bf16[64,72], y: bf16[40,96], v: bf16[96,72]", "plain_kernel"),
        ("torch.dot(v, w)", "v: f32[67], w: f32[67]", "plain_kernel"),
        ("torch.dot(v, v)", "v: f32[67]", "plain_kernel"),
    ],
)
def test_batches_vectors_and_what_tma_cannot_address(
    compiler: Compiler, expression: str, inputs: str, kernel: str
) -> None:
    problem = product_of(expression, inputs)
    error, ran = error_of(compiler, problem, {})
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value] and kernel in ran


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("F.silu(x @ g.T) * (x @ u.T)", "x: bf16[136,72], g: bf16[200,72], u: bf16[200,72]"),
        ("F.gelu(x @ g + c) * (x @ u)", "x: f16[136,72], g: f16[72,88], u: f16[72,88], c: f16[88]"),
        ("x @ w.T + y @ v.T + c", "x: bf16[40,72], w: bf16[88,72], y: bf16[40,72], v: bf16[88,72], c: bf16[88]"),
        ("(x @ w) * (y @ w)", "x: f32[72,104], w: f32[104,88], y: f32[72,104]"),
    ],
    ids=["SwiGLU", "GEGLU", "a sum", "fp32"],
)
def test_several_products_go_through_one_kernel(compiler: Compiler, expression: str, inputs: str) -> None:
    problem = product_of(expression, inputs)
    error, ran = error_of(compiler, problem, {"tile_m": 128, "tile_n": 64, "stages": 8})
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value] and ran.count("gemm_kernel") == 1


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_a_single_step_along_k_is_not_cut_in_parts(compiler: Compiler, dtype: str) -> None:
    problem = product_of("a @ b + c", f"a: {dtype}[64,64], b: {dtype}[64,72], c: {dtype}[72]")
    error, ran = error_of(compiler, problem, {"tile_m": 64, "tile_n": 64, "tile_k": 64, "stages": 4, "split_k": 4})
    assert error < ROUNDING[dtype] and "total_kernel" not in ran


@pytest.mark.parametrize("tile_n", [32, 64])
def test_two_right_operands_that_are_dense_along_n(compiler: Compiler, tile_n: int) -> None:
    """Narrow tiles have a narrower swizzle than the two of them side by side would."""
    problem = product_of("F.silu(x @ g) * (x @ u)", "x: bf16[64,64], g: bf16[64,72], u: bf16[64,72]")
    error, _ = error_of(compiler, problem, {"tile_m": 64, "tile_n": tile_n, "tile_k": 64, "stages": 8})
    assert error < ROUNDING["bf16"]


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("a @ b", "a: bf16[77,67], b: bf16[67,71]"),
        ("a @ b.T", "a: bf16[72,72], b: bf16[71,72]:(73,1)"),
        ("torch.bmm(a.mT, b)", "a: f32[3,66,72], b: f32[3,66,35]"),
        ("a @ b.T", "a: f32[2,3,24,64], b: f32[71,64]"),
    ],
    ids=["odd pitches", "one odd pitch", "fp32 dense along rows", "fp32 batches"],
)
def test_what_tma_cannot_address_is_converted(compiler: Compiler, expression: str, inputs: str) -> None:
    problem = product_of(expression, inputs)
    error, ran = error_of(compiler, problem, {})
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value]
    assert "convert_kernel" in ran and "gemm_kernel" in ran


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("F.relu(a @ b.T + c)", "a: bf16[72,1000], b: bf16[86,1000], c: bf16[86]"),
        ("torch.bmm(a, b)", "a: bf16[2,40,328], b: bf16[2,328,72]"),
        ("a @ b", "a: f32[40,1000], b: f32[1000,72]"),
    ],
)
def test_few_tiles_share_a_long_k(compiler: Compiler, expression: str, inputs: str) -> None:
    problem = product_of(expression, inputs)
    error, ran = error_of(compiler, problem, {"split_k": 4})
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value] and "total_kernel" in ran


def test_products_of_halves_are_as_exact_as_fp32(compiler: Compiler) -> None:
    """Rows of every size, and what is not finite, come out as fp32's own products do."""
    problem = product_of("a @ b.T", "a: f32[64,1000], b: f32[72,1000]")
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(spec.shape, generator=generator) for spec in problem.workload.inputs)
    a[0] *= 1e-42
    a[1] *= 1e30
    a[2] = 0.0
    a[3] *= torch.exp2(-torch.arange(1000) % 20.0)
    b[0] *= 1e-30
    b[1, 7] = 0.0
    a[8, 7], a[9, 7], b[10, 3] = math.inf, math.nan, -math.inf
    got, _ = result_of(compiler, problem, {"tile_m": 64, "tile_n": 128}, [a, b])
    own, expected = a @ b.T, a.double() @ b.T.double()
    assert torch.equal(got.isnan(), own.isnan()) and torch.equal(got[got.isinf()], own[own.isinf()])
    finite, size = own.isfinite(), a.double().abs() @ b.T.double().abs() + 1e-37
    mine, theirs = (((x.double() - expected).abs() / size)[finite] for x in (got, own))
    assert mine.max() < max(1.5 * float(theirs.max()), 2.0**-22) and mine.mean() < 1.5 * theirs.mean()


@pytest.mark.parametrize(
    "config",
    [
        {"tile_m": 128, "tile_n": 128, "stages": 4, "schedule": "pingpong"},
        {"tile_m": 64, "tile_n": 192, "stages": 2, "schedule": "pingpong", "cluster_m": 2, "cluster_n": 2},
        {"tile_m": 256, "tile_n": 128, "stages": 4, "cluster_n": 2, "raster": "n", "group": 1},
        {"tile_m": 128, "tile_n": 256, "stages": 4, "cluster_m": 2, "group": 2},
        {"tile_m": 64, "tile_n": 64, "tile_k": 128, "stages": 2, "cluster_m": 2},
    ],
)
def test_other_configs_are_right_too(compiler: Compiler, config: dict[str, Any]) -> None:
    error, _ = error_of(compiler, product_of("torch.relu(a @ b)", "a: bf16[328,200], b: bf16[200,456]"), config)
    assert error < ROUNDING["bf16"]


def test_teams_take_tiles_in_turn(compiler: Compiler) -> None:
    """More tiles than blocks, and more steps along k than stages: without its turn, the second team would take a
    barrier's phase for one two rounds later."""
    problem = product_of("a @ b.T", "a: bf16[768,256], b: bf16[768,256]")
    error, _ = error_of(compiler, problem, {"schedule": "pingpong", "stages": 2})
    assert error < ROUNDING["bf16"]


@pytest.mark.parametrize("inputs", ["a: bf16[2,64], b: bf16[64,128]", "a: bf16[136,64], b: bf16[64,8]"])
@pytest.mark.parametrize("config", [{"tile_m": 128, "tile_n": 128, "schedule": "pingpong"},
                                    {"cluster_m": 2, "cluster_n": 2}])  # fmt: skip
def test_what_lies_outside_a_result_of_one_tile_is_not_stored(
    compiler: Compiler, config: dict[str, Any], inputs: str
) -> None:
    error, ran = error_of(compiler, product_of("torch.sigmoid(a @ b)", inputs), config)
    assert error < ROUNDING["bf16"] and "gemm_kernel" in ran


@pytest.mark.parametrize("inputs", ["a: bf16[136,72], b: bf16[72,200], bias: bf16[200]",
                                    "a: f32[72,96], b: f32[96,83], bias: f32[83]"])  # fmt: skip
def test_the_default_is_right(compiler: Compiler, inputs: str) -> None:
    judged(compiler, product_of("torch.relu(a @ b + bias)", inputs))


def test_dimensions_that_lie_as_one_become_one() -> None:
    found = products(read(product_of("x @ w", "x: bf16[4,8,16,64], w: bf16[64,32]")))
    assert found and (found.m, found.n, found.batch) == ((0, 1, 2), (3,), ())
    found = products(read(product_of("x.transpose(1, 2) @ w", "x: bf16[8,64,16], w: bf16[64,32]")))
    assert found and (found.m, found.n, found.batch) == ((1,), (2,), (0,))


def test_a_transposed_result_swaps_the_operands() -> None:
    found = products(read(product_of("(a @ b).T", "a: bf16[64,32], b: bf16[32,128]")))
    assert found and (found.lefts[0].tensor, found.rights[0].tensor) == (1, 0)


def test_every_candidate_for_the_default_is_feasible() -> None:
    for inputs in ("a: bf16[8,8], b: bf16[8,8]", "a: bf16[4096,4096], b: bf16[4096,4096]"):
        problem = product_of("a @ b", inputs)
        config = gemm.default_config(read(problem), problem.workload)
        assert not gemm.why_not(read(problem), config) and all(config[name] in DOMAINS[name] for name in DOMAINS)


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("a @ b", "a: bf16[4096,64], b: bf16[64,4096]"),
        ("a @ b", "a: f32[512,64], b: f32[64,512]"),
        ("(a @ b) * (a @ c)", "a: bf16[64,64], b: bf16[64,64], c: bf16[64,64]"),
    ],
)
def test_the_module_says_what_the_family_says(expression: str, inputs: str) -> None:
    """``constraints`` in the text is given the same facts as ``why_not``."""
    problem = product_of(expression, inputs)
    graph = read(problem)
    text = gemm.write(problem, graph, SMALL)
    constraints = constraints_of(text)
    found, names = set(), ("tile_m", "tile_n", "tile_k", "schedule", "stages", "split_k")
    for values in itertools.product(*(DOMAINS[name] for name in names)):
        config = {**SMALL, **dict(zip(names, values, strict=True))}
        assert constraints(config, problem.workload, None) == (not gemm.why_not(graph, config))
        found.add(not gemm.why_not(graph, config))
    assert found == {True, False}


def test_what_fits_shared_memory_and_registers() -> None:
    graph = read(product_of("a @ b", "a: bf16[64,64], b: bf16[64,64]"))
    one = products(graph)
    assert one and stages_that_fit(one, {**SMALL, "tile_m": 128, "tile_n": 256}) == 4
    assert gemm.why_not(graph, {**SMALL, "tile_m": 256, "tile_n": 256}), "256 accumulators a thread"
    halves = products(read(product_of("a @ b", "a: f32[64,64], b: f32[64,64]")))
    assert halves and stages_that_fit(halves, {**SMALL, "tile_m": 128, "tile_n": 128}) == 3


@pytest.mark.parametrize(
    ("expression", "inputs", "says"),
    [
        ("torch.relu(a) @ b", "a: bf16[64,64], b: bf16[64,64]", "a matrix product of a computed value"),
        ("(a @ b) * (v @ b)", "a: bf16[64,64], b: bf16[64,64], v: bf16[64]", "several matrix products"),
        ("torch.softmax(a @ b, -1)", "a: f32[64,64], b: f32[64,64]", "a reduction of a matrix product's result"),
        ("torch.einsum('ij,jk,kl->il', a, b, b)", "a: bf16[64,64], b: bf16[64,64]", "einsum 'ij,jk,kl->il'"),
        ("a @ b > 0", "a: bf16[64,64], b: bf16[64,64]", "not bool"),
        ("a @ b + c", "a: bf16[64,64], b: bf16[64,64], c: bf16[64,64]:(1,64)", "an input that is not row-major"),
    ],
)
def test_what_it_cannot_serve_is_named(expression: str, inputs: str, says: str) -> None:
    problem = product_of(expression, inputs)
    with pytest.raises(ProviderError, match=f"{says}.*another provider"):
        graph = read(problem)
        family_for(graph).write(problem, graph, SMALL)

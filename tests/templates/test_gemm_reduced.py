"""Products whose rows are reduced before they are written: in a tile, over a cluster, and from parts."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.families.family import Family
from cutegen_lab.templates.families.gemm import reduced
from cutegen_lab.templates.families.gemm.reduced.config import DOMAINS
from cutegen_lab.templates.families.gemm.reduced.steps import steps
from cutegen_lab.templates.frontend.expr import Graph
from cutegen_lab.templates.frontend.formula import formula
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.kernels.limits.gemm_sm90 import RESIDENT
from cutegen_lab.templates.pipeline import Pipeline
from cutegen_lab.templates.recognise import template_for
from cutegen_lab.templates.registry import family_for
from cutegen_lab.templates.template import Single
from tests.harness.checking import ROUNDING, Compiler, error_of, judged, problem_of, product_of, result_of
from tests.harness.exported import constraints_of

FAMILY = reduced.FAMILY
SMALL: dict[str, Any] = {"tile_m": 64, "tile_n": 64, "tile_k": 64, "stages": 3, "cluster_m": 1, "cluster_n": 1,
                         "schedule": "cooperative", "raster": "m", "group": 8}  # fmt: skip


def faulty_family(before: str, after: str) -> Family:
    """The family, with ``before`` in its text replaced by ``after``."""

    def write(problem: Problem, graph: Graph, config: Config) -> str:
        text = reduced.write(problem, graph, config)
        assert before in text
        return text.replace(before, after)

    return replace(reduced.FAMILY, write=write)


SOFTMAX = ("torch.softmax(a @ b, -1)", "a: bf16[72,64], b: bf16[64,200]")
LAYER_NORM = (
    "F.layer_norm(F.linear(a, b, c) + r, w.shape, w, v)",
    "a: bf16[136,64], b: bf16[184,64], c: bf16[184], r: bf16[136,184], w: bf16[184], v: bf16[184]",
)


@pytest.mark.parametrize(
    ("expression", "inputs", "config", "kernels"),
    [
        (*SOFTMAX, {"tile_n": 256}, 1),
        ("F.rms_norm(F.linear(a, b) + r, w.shape, w, 1e-6)",
         "a: bf16[200,136], b: bf16[128,136], r: bf16[200,128], w: bf16[128]", {"tile_m": 128, "tile_n": 128}, 1),
        ("torch.bmm(a, b).float().log_softmax(-1)", "a: f16[3,40,64], b: f16[3,64,72]", {"tile_n": 128}, 1),
        ("(F.relu(a @ b + m[:, None]) * 0.5).amax(-1) + m", "a: bf16[72,64], b: bf16[64,88], m: bf16[72]",
         {"tile_m": 256, "tile_n": 128}, 1),
        (*SOFTMAX, {"cluster_n": 4, "cluster_m": 2, "schedule": "pingpong"}, 1),
        ("(a @ b).sum(-1, keepdim=True)", "a: bf16[72,64], b: bf16[64,360]", {"cluster_n": 6, "tile_m": 128}, 1),
        ("(a @ b).float().logsumexp(-1)", "a: bf16[72,64], b: bf16[64,200]", {}, 2),
        ("F.gelu(a @ b + r).mean(-1)", "a: bf16[72,64], b: bf16[64,264], r: bf16[72,264]",
         {"cluster_n": 2, "tile_m": 128}, 2),
        ("(a @ b.mT).var(-1)", "a: bf16[2,72,64], b: bf16[2,200,64]", {"schedule": "pingpong"}, 2),
    ],
    ids=["softmax", "residual and norm", "batches", "a maximum", "softmax of four blocks",
         "a sum of six blocks", "logsumexp in parts", "a mean in parts", "a variance in parts"],
)  # fmt: skip
def test_rows_are_reduced_where_they_are(
    compiler: Compiler, expression: str, inputs: str, config: dict[str, Any], kernels: int
) -> None:
    problem, config = product_of(expression, inputs), {**SMALL, **config}
    assert not reduced.why_not(read(problem), config)
    error, ran = error_of(compiler, FAMILY, problem, config)
    assert error < ROUNDING[problem.workload.outputs[0].dtype.value]
    assert len(ran.split("+")) == kernels and ("combine_kernel" in ran) == (kernels == 2)


@pytest.mark.parametrize(
    ("before", "after", "expression", "inputs", "config"),
    [
        ("    if ragged:", "    if False:", "(a @ b * 0.01).exp().sum(-1)", "a: bf16[72,64], b: bf16[64,200]",
         {"tile_n": 256}),
        ("or (whole and n < tile_n * cluster_n)", "", "(a @ b * 0.01).exp().sum(-1)", "a: bf16[72,64], b: bf16[64,64]",
         {"cluster_n": 2}),
        ("range_constexpr((cluster_n + 3) // 4)", "range_constexpr(1)", "(a @ b).sum(-1)",
         "a: bf16[72,64], b: bf16[64,360]", {"cluster_n": 6}),
        ("if (k_first + k_tile) % cluster_n == rank_n", "if rank_n == 0", "(a @ b).sum(-1)",
         "a: bf16[72,64], b: bf16[64,64]", {}),
    ],
    ids=["no mask in a tile", "no mask of a whole tile", "some blocks get nothing", "no fault"],
)  # fmt: skip
def test_a_planted_fault_is_seen(
    compiler: Compiler, before: str, after: str, expression: str, inputs: str, config: dict[str, Any]
) -> None:
    problem, faulty = product_of(expression, inputs), faulty_family(before, after)
    try:
        error, _ = error_of(compiler, faulty, problem, {**SMALL, **config})
    except AssertionError as fault:
        assert not str(fault).startswith("CompileFailure"), fault
        error = math.inf  # the emulator names it
    assert (error > 2 * ROUNDING["bf16"]) == (after != "if rank_n == 0")


@pytest.mark.parametrize(
    "config",
    [
        {"tile_m": 64, "cluster_m": 2, "cluster_n": 3, "schedule": "pingpong", "stages": 4},
        {"tile_n": 192, "schedule": "pingpong", "stages": 2},
        {"tile_m": 128, "cluster_n": 3, "stages": 2},
    ],
)
def test_blocks_take_tile_after_tile(compiler: Compiler, config: dict[str, Any]) -> None:
    """More tiles than blocks: residuals come through the pipeline between two teams' operands, and what blocks send
    each other lies in either of two places."""
    few = faulty_family(f"RESIDENT = {RESIDENT}", f"RESIDENT = {dict.fromkeys(RESIDENT, 1)}")
    inputs = "a: bf16[520,136], b: bf16[192,136], r: bf16[520,192], w: bf16[192]"
    problem = product_of("F.layer_norm(F.linear(a, b) + r, w.shape, w)", inputs)
    assert error_of(compiler, few, problem, {**SMALL, **config})[0] < ROUNDING["bf16"]


@pytest.mark.parametrize("config", [{"tile_n": 128}, {"tile_n": 64, "cluster_n": 2}])
def test_a_layer_norm_far_from_zero_is_as_exact_as_pytorchs(compiler: Compiler, config: dict[str, Any]) -> None:
    """Sums of squares less the square of the sum would leave nothing of a variance of 1 about 3000."""
    problem = product_of("F.layer_norm((a @ b).float() + r, (112,))", "a: bf16[72,64], b: bf16[64,112], r: f32[72,112]")
    generator = torch.Generator().manual_seed(2)
    a, b, r = (torch.randn(spec.shape, generator=generator) for spec in problem.workload.inputs)
    a, b, r = (a / 8).bfloat16(), b.bfloat16(), r + 3000.0
    got, _ = result_of(compiler, FAMILY, problem, {**SMALL, **config}, [a, b, r])
    total = a.double() @ b.double() + r.double()
    expected = torch.nn.functional.layer_norm(total, (112,))
    own = torch.nn.functional.layer_norm(total.float(), (112,))  # what rounding the sum alone costs
    assert (got - expected).abs().max() < 3 * (own - expected).abs().max()


def test_infinities_are_no_trouble_to_parts(compiler: Compiler) -> None:
    problem = product_of("((a @ b).float() + r).logsumexp(-1)", "a: bf16[72,64], b: bf16[64,200], r: f32[72,200]")
    torch.manual_seed(0)
    a, b, r = torch.randn(72, 64).bfloat16(), torch.randn(64, 200).bfloat16(), torch.zeros(72, 200)
    r[0], r[1, :128], r[2, 7], r[3, 7], r[4, 64:] = -math.inf, -math.inf, math.inf, math.nan, -300.0
    got, _ = result_of(compiler, FAMILY, problem, SMALL, [a, b, r])
    expected = (a.double() @ b.double() + r).logsumexp(-1)
    assert torch.allclose(got.double(), expected, rtol=1e-5, atol=1e-5, equal_nan=True)
    assert expected[0] == -math.inf and expected[2] == math.inf and expected[3].isnan()


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("F.rms_norm(F.linear(a, b) + r, w.shape, w, 1e-6)",
         "a: bf16[200,64], b: bf16[320,64], r: bf16[200,320], w: bf16[320]"),
        ("F.linear(a, b).float().logsumexp(-1)", "a: bf16[72,72], b: bf16[2500,72]"),
    ],
)  # fmt: skip
def test_the_default_passes_the_judge(compiler: Compiler, expression: str, inputs: str) -> None:
    """Derived workloads too: their operands are copied where TMA cannot address them."""
    name, artifact = judged(compiler, problem_of(expression, inputs))
    assert name == reduced.NAME and len(artifact.builds) > 1


@pytest.mark.parametrize(
    "inputs",
    ["a: f16[2,2,1,1], b: f16[2,2,3,1]", "a: bf16[4,40,64], b: bf16[4,40,64]:(1,256,4)"],
    ids=["a number and a column", "dense along batches"],
)
def test_matrices_without_dense_rows_or_columns_are_copied(compiler: Compiler, inputs: str) -> None:
    name, _ = judged(compiler, problem_of("torch.softmax(a @ b.mT, -1)", inputs, checks=()))
    assert name == reduced.NAME


@pytest.mark.parametrize(
    ("expression", "inputs", "says"),
    [
        ("torch.softmax(a @ b, -1)", "a: bf16[64,64], b: bf16[64,4096]",
         r"rows of 4,096 are wider than the tiles of a cluster, 512 \(2 × 256; at most 8 × 256\)"),
        ("(a @ b).sum(-1)", "a: bf16[64,64], b: bf16[64,64]", ""),
    ],
)  # fmt: skip
def test_rows_too_wide_are_named(expression: str, inputs: str, says: str) -> None:
    graph = read(product_of(expression, inputs))
    config = {**SMALL, "tile_m": 128, "tile_n": 256, "cluster_n": 2}
    assert reduced.matches(graph)
    found = reduced.why_not(graph, config)
    assert bool(found) == bool(says) and (not says or re.fullmatch(says, found))


def test_what_does_not_pay_is_cut() -> None:
    def made(m: int, n: int, k: int) -> type:
        problem = product_of("torch.softmax(a @ b, -1)", f"a: bf16[{m},{k}], b: bf16[{k},{n}]")
        return type(template_for(problem, "sm_90a"))

    assert made(16384, 768, 768) is Single and made(4096, 256, 4096) is Single
    assert made(4096, 4096, 4096) is Pipeline and made(4096, 2048, 8192) is Pipeline


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("torch.softmax(a @ b, -1)", "a: f32[64,64], b: f32[64,64]"),
        ("torch.softmax(a @ b, 0)", "a: bf16[64,64], b: bf16[64,64]"),
        ("torch.softmax(a @ b, -1)", "a: bf16[64], b: bf16[64]"),
        ("(a @ b).argmax(-1)", "a: bf16[64,64], b: bf16[64,64]"),
        ("(a @ b).sum()", "a: bf16[64,64], b: bf16[64,64]"),
    ],
)
def test_what_it_leaves_to_others(expression: str, inputs: str) -> None:
    try:
        family = family_for(read(product_of(expression, inputs)))
    except ProviderError:
        return
    assert family is not FAMILY


def test_the_module_says_what_the_family_says() -> None:
    """``constraints`` in the text is given the same facts as ``why_not``."""
    problem = product_of("torch.softmax(a @ b, -1)", "a: bf16[64,64], b: bf16[64,700]")
    graph = read(problem)
    text = reduced.write(problem, graph, SMALL)
    constraints = constraints_of(text)
    found, names = set(), ("tile_m", "tile_n", "tile_k", "schedule", "stages", "cluster_m", "cluster_n")
    for values in itertools.product(*(DOMAINS[name] for name in names)):
        config = {**SMALL, **dict(zip(names, values, strict=True))}
        assert constraints(config, problem.workload, None) == (not reduced.why_not(graph, config))
        found.add(not reduced.why_not(graph, config))
    assert found == {True, False}


def test_registers_keep_what_all_the_rest_follows_from() -> None:
    graph = read(product_of(*LAYER_NORM))
    names = list("abcrwv")
    kept = [[formula(graph, index, names) for index in step.keep] for step in steps(graph)]
    total = "(a @ b.mT + c) + r"
    assert kept == [[total], [f"({total}) - (sum({total}) / n)"]]
    graph = read(product_of(*SOFTMAX))
    assert [len(step.keep) for step in steps(graph)] == [1, 1]
    assert formula(graph, steps(graph)[1].keep[0], names).startswith("exp(")

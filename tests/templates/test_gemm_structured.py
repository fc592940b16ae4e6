"""fp32 products beside PyTorch's own on inputs with structure: never further from float64, whatever the inputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from benchmarks.templates.structured_products import EXACT, KINDS, Draw, Kind, drawn, loss
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.problem import Problem
from cutegen_lab.emulator import Options, run_plan
from cutegen_lab.judge.execution.buffers import POISONS, Buffers
from cutegen_lab.templates.families import gemm
from tests.harness import checking
from tests.harness.checking import NEVER, Compiler, product_of
from tests.templates.test_gemm import SMALL

M, N, K, SEED = 136, 72, 328, 20261122  # several tiles, the last ones ragged
ONCE = 2.0**-24  # what rounding once loses at most
ORDER = 1.25  # of two worst errors of many, adding up in another order alone makes so much
INPUTS = f"a: f32[{M},{K}], b: f32[{K},{N}]"
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "nn": ("a @ b", INPUTS, {}),
    "nt": ("a @ b.T", f"a: f32[{M},{K}], b: f32[{N},{K}]", {"tile_n": 128, "schedule": "pingpong"}),
    "tn": ("a.T @ b", f"a: f32[{K},{M}], b: f32[{K},{N}]", {"tile_m": 128, "cluster_m": 2}),
    "in parts": ("a @ b", INPUTS, {"split_k": 4}),
    "odd": ("a @ b", f"a: f32[{M - 1},{K + 1}], b: f32[{K + 1},{N - 1}]", {"tile_n": 32}),
    "16-bit results": ("(a @ b).half().float()", INPUTS, {}),
}
ELSEWHERE = ("columns graded, rows inversely", "log-uniform, half the exponents", "24-bit integers times one-hot")
ORDINARY: dict[str, Kind] = {
    "normal": KINDS["normal"],
    "uniform": lambda d, m, n, k: (d.uniform(m, k), d.uniform(k, n)),
    "half are zeros": lambda d, m, n, k: (d.normal(m, k).relu(), d.normal(k, n)),
    "rows and columns of zeros": lambda d, m, n, k: (
        d.normal(m, k) * (torch.arange(m) < 50)[:, None],
        d.log_uniform(-60, 60, k, n) * (torch.arange(n) < 0),
    ),
    "a few tiny numbers": lambda d, m, n, k: (
        d.normal(m, k) * torch.where(d.uniform(m, k) < 0.02, 1e-12, 1.0), d.normal(k, n)
    ),
    "small integers": KINDS["small integers"],
    "rows from 1e-15 to 1e15": KINDS["rows from 1e-15 to 1e15"],
    "probabilities": lambda d, m, n, k: (torch.softmax(2.0 * d.normal(m, k), -1), d.normal(k, n)),
}  # fmt: skip


def built_for(compiler: Compiler, case: str) -> tuple[Problem, Artifact]:
    expression, inputs, config = CASES[case]
    problem = product_of(expression, inputs)
    text = gemm.write(problem, compiler.graph(problem), {**SMALL, **config})
    artifact = checking.built(compiler, text, [problem.workload])
    names = "+".join(kernel.name for kernel in artifact.builds["main"].kernels)
    assert "convert_kernel" in names and "gemm_kernel" in names
    return problem, artifact


def given(case: str, a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
    return [a.T.contiguous() if case == "tn" else a, b.T.contiguous() if case == "nt" else b]


@pytest.mark.parametrize(
    ("case", "kind"), [("nn", kind) for kind in KINDS] + [(c, kind) for c in list(CASES)[1:5] for kind in ELSEWHERE]
)
def test_no_further_from_float64_than_pytorch(compiler: Compiler, case: str, kind: str) -> None:
    odd = int(case == "odd")
    a, b = drawn(kind, M - odd, N - odd, K + odd, SEED)
    (got,) = checking.outputs(*built_for(compiler, case), given(case, a, b))
    mine, own = loss(got, a, b), loss(a @ b, a, b)
    assert mine.norm <= 1.5 * own.norm, f"{mine} beside PyTorch's {own}"
    assert mine.worst <= max(ORDER * own.worst, 2 * ONCE), f"{mine} beside PyTorch's {own}"
    if kind in EXACT:
        assert mine == (0.0, 0.0)


def test_a_thread_with_more_columns_computes_them_again(compiler: Compiler) -> None:
    """Pieces of 16-bit results are twice as wide."""
    a, b = drawn("columns graded, rows inversely", M, N, K, SEED)
    (got,) = checking.outputs(*built_for(compiler, "16-bit results"), [a, b])
    own = (a @ b).half().float()
    assert float((got - own).norm() / own.norm()) < 2.0**-12


def test_results_far_below_both_scales_keep_their_bits(compiler: Compiler) -> None:
    """One operand's scale is as small as can be, the other's as large, and what meets is small in both."""
    a, b = drawn("normal", M, N, K, SEED)
    a[:, 1:64], b[:64], a[:, 264:] = 0.0, 0.0, 0.0
    a[:, 0], a[:, 64:264], b[264:], b[64:264] = 2.0**126, a[:, 64:264] * 2.0**102, 2.0**-110, b[64:264] * 2.0**-132
    (got,) = checking.outputs(*built_for(compiler, "nn"), [a, b])
    mine, own = loss(got, a, b), loss(a @ b, a, b)
    assert mine.norm <= 1.5 * own.norm and mine.worst <= max(ORDER * own.worst, 2 * ONCE)


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_inputs_are_not_computed_again(compiler: Compiler, kind: str) -> None:
    scales = 192 * 128 * 10  # bytes: of 16 results' 2 rows and 8 columns, 16 each
    a, b = ORDINARY[kind](Draw(SEED), M, N, K)
    assert bytes_read(compiler, a, b) == scales


def test_doubtful_results_alone_are_computed_again(compiler: Compiler) -> None:
    """By the threads that have them: of each of two tiles, the 16 columns that lie in the result, 2 rows, all of k."""
    a, b = drawn("normal", M, N, K, SEED)
    ordinary = bytes_read(compiler, a, b)
    a[5, 7] = 1e20
    again = bytes_read(compiler, a, b) - ordinary
    assert 0 < again <= 128 // 16 * 2 * (2 + 8) * 4 * K


def bytes_read(compiler: Compiler, a: torch.Tensor, b: torch.Tensor) -> float:
    """By the product's threads: not what TMA brings."""
    problem, artifact = built_for(compiler, "nn")
    build = artifact.builds["main"]
    buffers = Buffers(problem.workload, build, [a, b], POISONS[0])
    result = run_plan(build, buffers.tensors, buffers.views, NEVER, Options(shadow=False, races=False))
    return float(result.per_launch[-1]["global_load_bytes"])

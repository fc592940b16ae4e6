"""Parts of inputs, and several results of different rank: SGLang's kernels as its formulas are written."""

from __future__ import annotations

import pytest

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.problems import read_text
from cutegen_lab.templates.emit.views import View
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.frontend.shape_exprs import ShapeExpr
from tests.harness.checking import Compiler, counted, judged, load_width, problem_of, read_times

SILU_AND_MUL = """
def reference(x):
    d = x.shape[-1] // 2
    return F.silu(x[..., :d]) * x[..., d:]
"""
FUSED_ADD_RMSNORM = """
def reference(x, residual, weight):
    dtype = x.dtype
    x = x.to(torch.float32) + residual.to(torch.float32)
    residual = x.to(dtype)
    variance = x.pow(2).mean(dim=-1, keepdim=True)
    x = (x * torch.rsqrt(variance + 1e-6)).to(dtype)
    return x * weight, residual
"""
ROUNDED_ADD_RMSNORM = """
def reference(x, residual, weight):
    total = x + residual
    return F.rms_norm(total, weight.shape, weight, 1e-6), total
"""
MERGE_ATTN_STATES = """
def reference(a, lse_a, b, lse_b):
    peak = torch.maximum(lse_a, lse_b)
    ea, eb = torch.exp(lse_a - peak), torch.exp(lse_b - peak)
    total = ea + eb
    out = a * (ea / total).unsqueeze(-1) + b * (eb / total).unsqueeze(-1)
    return out.to(a.dtype), torch.log(total) + peak
"""

MERGED_BY_LOGADDEXP = """
def reference(a, lse_a, b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    out = a * torch.exp(lse_a - lse).unsqueeze(-1) + b * torch.exp(lse_b - lse).unsqueeze(-1)
    return out.to(a.dtype), lse
"""


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_silu_and_mul_reads_both_halves_in_full_vectors(compiler: Compiler, dtype: str) -> None:
    problem = problem_of(SILU_AND_MUL, f"x: {dtype}[16,512]", checks=None)
    family, artifact = judged(compiler, problem)
    assert family == "elementwise chain"
    assert (read_times(problem, artifact), load_width(problem, artifact)) == (1, 512)


@pytest.mark.parametrize("source", [FUSED_ADD_RMSNORM, ROUNDED_ADD_RMSNORM], ids=["fp32 sum", "rounded sum"])
def test_fused_add_rmsnorm_reads_each_input_once(compiler: Compiler, source: str) -> None:
    problem = problem_of(source, "x: bf16[24,512], residual: bf16[24,512], weight: bf16[512]", checks=None)
    family, artifact = judged(compiler, problem)
    counters = counted(problem, artifact)
    assert family == "row reduction" and counters["global_load_bytes"] == 3 * 24 * 512 * 2  # the weight once a row


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_merge_attn_states_writes_both_results(compiler: Compiler, dtype: str) -> None:
    inputs = f"a: {dtype}[6,4,64], lse_a: f32[6,4], b: {dtype}[6,4,64], lse_b: f32[6,4]"
    problem = problem_of(MERGE_ATTN_STATES, inputs, checks=None)
    family, artifact = judged(compiler, problem)
    counters, vectors = counted(problem, artifact), 6 * 4 * 64 * problem.workload.inputs[0].dtype.itemsize // 16
    assert family == "elementwise chain"
    # a division takes the special-function unit twice
    assert counters["warp_instructions_special"] < 12 * vectors / 32, "weights once a vector, not once an element"


def test_merged_by_logaddexp(compiler: Compiler) -> None:
    inputs = "a: bf16[6,4,64], lse_a: f32[6,4], b: bf16[6,4,64], lse_b: f32[6,4]"
    assert judged(compiler, problem_of(MERGED_BY_LOGADDEXP, inputs, checks=None))[0] == "elementwise chain"


PARTS = [
    ("x[:, 1:] - x[:, :-1]", "x: f32[50,96]", "elementwise chain"),
    ("x[:, 0] * x[:, 1]", "x: bf16[50,8]", "elementwise chain"),
    ("x[:, :1] * x", "x: f32[8,40]", "elementwise chain"),
    ("x.narrow(1, 3, 5) * 2", "x: f16[8,24]", "elementwise chain"),
    ("(x * 2).split(x.shape[1] // 2, 1)[1]", "x: f32[8,4,40]", "elementwise chain"),
    ("torch.softmax(x[:, :64], -1)", "x: f32[20,128]", "row reduction"),
    ("torch.softmax(x.chunk(3, -1)[1], -1)", "x: bf16[20,384]", "row reduction"),
    ("x[..., 0].sum(-1)", "x: f32[8,40,4]", "row reduction"),
    ("torch.chunk(x, 2, 1)[1].mean(1)", "x: bf16[3,20,48]", "column reduction"),
]


@pytest.mark.parametrize(("expression", "inputs", "family"), PARTS, ids=[p[0] for p in PARTS])
def test_a_part_is_read_where_it_lies(compiler: Compiler, expression: str, inputs: str, family: str) -> None:
    assert judged(compiler, problem_of(expression, inputs, checks=None))[0] == family


def test_where_a_part_begins_follows_from_the_shape() -> None:
    graph = read(read_text(SILU_AND_MUL, inputs_text="x: bf16[64,1024]"))
    half = ShapeExpr(0, 1, over=2)
    assert [(s.start, s.length) for s in graph.slices] == [(ShapeExpr(), half), (half, half)]
    fixed = read(read_text("def reference(x):\n    return x[:, 3:7] + 1\n", inputs_text="x: bf16[64,1024]"))
    assert [(s.start.plus, s.length.plus) for s in fixed.slices] == [(3, 4)]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("x[:, ::2] + 1", "slice with step 2.*aten.slice"),
        ("torch.softmax(x, -1)[:, :8]", "dimension that the result does not have"),
        ("x[:, :32] @ x[:, 32:].T", "matrix product of a slice.*aten"),
    ],
)
def test_what_is_no_part_of_an_input_is_named(expression: str, says: str) -> None:
    problem = read_text(f"def reference(x):\n    return {expression}\n", inputs_text="x: f32[40,64]")
    with pytest.raises(ProviderError, match=says):
        read(problem)


def test_a_transposed_tensor_is_walked_by_its_own_stride() -> None:
    """x + y.T, softmax(x.T): neighbours in the space's last dimension are rows apart in memory."""
    rows, columns = View("x", "x", (0, 1)), View("x", "x", (1, 0))
    assert (rows.step([1]), columns.step([1])) == ("1", "x.stride[0]")
    assert rows.contiguous([0, 1]) and not columns.contiguous([0, 1])
    assert View("x", "x", (0, None)).step([0]) == "1", "what is broadcast lies in nobody's way"
    assert not View("x", "x", (0, 2, 1)).contiguous([0, 1]) and View("x", "x", (0, 2, None)).contiguous([0, 1])

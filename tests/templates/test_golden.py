"""The text of generated modules, as it was last read and accepted: ``pytest tests/templates/test_golden.py --accept``.

A change that is meant shows as a diff of ``tests/golden/``, to be reviewed like any other; whether such text is right
is for the other tests to say.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cutegen_lab.templates.recognise import template_for
from tests.harness.accepted import GOLDEN, check_accepted, check_no_other
from tests.harness.checking import ARCH, problem_of


@dataclass(frozen=True)
class Case:
    """A reference and its inputs. A config would change the defaults in the text, and no more."""

    expression: str
    inputs: str
    arch: str = ARCH


CASES = {
    "elementwise": Case("F.gelu(x * s) + b[:, None]", "x: bf16[64,4096], s: bf16[4096], b: f32[64]"),
    "elementwise_odd": Case("F.silu(x) * y", "x: f16[31,77], y: f16[31,77]"),
    "softmax": Case("torch.softmax(x, -1)", "x: bf16[4096,8192]"),
    "softmax_of_long_rows": Case("torch.softmax(x, -1)", "x: f32[64,530001]"),
    "norm": Case("F.layer_norm(x, w.shape, w, b)", "x: bf16[4096,4096], w: bf16[4096], b: bf16[4096]"),
    "argmax": Case("x.argmax(-1)", "x: f32[128,1000]"),
    "columns": Case("x.sum(0)", "x: bf16[65536,512]"),
    "softmax_of_columns": Case("torch.softmax(x, 1)", "x: f32[4,500,72]"),
    "scan_of_rows": Case("x.cumsum(-1)", "x: f32[64,5000]"),
    "scan_of_columns": Case("x.cumsum(0)", "x: f32[5000,64]"),
    "total": Case("F.mse_loss(x, y)", "x: bf16[1024,4096], y: bf16[1024,4096]"),
    "cross_entropy": Case("F.cross_entropy(x, t)", "x: bf16[512,32000], t: i64[512]"),
    "few_rows": Case("F.linear(x, w, b)", "x: bf16[4,4096], w: bf16[4096,4096], b: bf16[4096]"),
    "gemm": Case("F.gelu(F.linear(x, w, b))", "x: bf16[4096,4096], w: bf16[4096,4096], b: bf16[4096]"),
    "gemm_odd_pitches": Case("x @ w", "x: bf16[77,333], w: bf16[333,129]"),
    "gemm_gated": Case("F.silu(x @ g.T) * (x @ u.T)", "x: bf16[2048,4096], g: bf16[4096,4096], u: bf16[4096,4096]"),
    "gemm_8_bits": Case("(a.float() @ b.float().T * sa * sb).bfloat16()",
                        "a: f8e4m3fn[1024,1024], b: f8e4m3fn[1024,1024], sa: f32[1024,1], sb: f32[1024]"),
    "gemm_fp32": Case("a @ b", "a: f32[1024,1024], b: f32[1024,1024]"),
    "gemm_softmax": Case("torch.softmax(a @ b, -1)", "a: bf16[4096,512], b: bf16[512,1024]"),
    "gemm_sm_80": Case("F.relu(F.linear(x, w, b))", "x: f16[1024,1024], w: f16[1024,1024], b: f16[1024]", "sm_80"),
    "avg_pool2d": Case("F.relu(F.avg_pool2d(x, 3, 2, 1))", "x: bf16[16,32,64,64]"),
    "several_kernels": Case("F.linear(F.gelu(F.linear(x, w)), v)",
                            "x: bf16[512,1024], w: bf16[4096,1024], v: bf16[1024,4096]"),
    "attention": Case("F.scaled_dot_product_attention(q, k, v)",
                      "q: bf16[2,8,256,64], k: bf16[2,8,256,64], v: bf16[2,8,256,64]"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_as_accepted(name: str, request: pytest.FixtureRequest) -> None:
    case, path = CASES[name], GOLDEN / f"{name}.py"
    template = template_for(problem_of(case.expression, case.inputs), case.arch)
    text = template.write(template.default_config())
    check_accepted(path, text, request.config)


def test_every_accepted_text_is_looked_at(request: pytest.FixtureRequest) -> None:
    check_no_other("*.py", set(CASES), request.config)

"""Values that follow from where they are, and what is computed of statistics and truth values."""

from __future__ import annotations

import pytest

from tests.harness.checking import Compiler, judged, problem_of


@pytest.mark.parametrize(
    ("expression", "inputs", "family"),
    [
        ("torch.tril(x, 1) + torch.triu(y)", "x: f32[3,24,40], y: bf16[24,40]", "elementwise chain"),
        ("torch.where(torch.arange(x.shape[1]) < 7, x, torch.nan_to_num(x))", "x: f16[24,37]", "elementwise chain"),
        ("torch.softmax(x.masked_fill(torch.ones(x.shape[1:]).tril() == 0, -math.inf), -1)", "x: f32[2,24,24]",
         "row reduction"),
        ("torch.outer(x, y)", "x: f32[24], y: bf16[40]", "elementwise chain"),
        ("torch.diag(x)", "x: f32[40]", "elementwise chain"),
        ("(*torch.std_mean(x, 1, unbiased=False), (x > 0).any(1), (x > 0).sum(1))", "x: f32[8,40]", "row reduction"),
        ("F.selu(x) + F.celu(x, 2.0) * F.logsigmoid(x)", "x: f32[8,40]", "elementwise chain"),
        ("F.adaptive_avg_pool2d(x, 1)", "x: bf16[3,8,6,4]", "row reduction"),
    ],
)  # fmt: skip
def test_kernels(compiler: Compiler, expression: str, inputs: str, family: str) -> None:
    assert judged(compiler, problem_of(expression, inputs))[0] == family

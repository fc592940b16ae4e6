"""Operators that are a few operations of the graph, against PyTorch's own."""

from __future__ import annotations

import pytest

from tests.harness.checking import Compiler, judged, problem_of


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("2.0 ** x", "x: {}[9,40]"),
        ("torch.log10(x.abs() + 1)", "x: {}[9,40]"),
        ("torch.frac(x)", "x: {}[9,40]"),
        ("F.gelu(x, approximate='tanh')", "x: {}[9,40]"),
        ("torch.isinf(x * 1e30)", "x: {}[9,40]"),
        ("F.threshold(x, 0.1, 20.0)", "x: {}[9,40]"),
        ("F.prelu(x, w)", "x: {0}[9,40], w: {0}[1]"),
        ("F.prelu(x, w)", "x: {0}[3,5,40], w: {0}[5]"),
        ("torch.stack([x, y], 1)", "x: {0}[9,40], y: {0}[9,40]"),
        ("F.pad(x, (1, 2, 3, 4), value=2.5)", "x: {}[9,40]"),
        ("torch.max(x, torch.min(y, x * 2))", "x: {0}[9,40], y: {0}[9,40]"),
        ("torch.min(x, torch.tensor(0.3, device=x.device)) * torch.as_tensor([3])", "x: {}[9,40]"),
        ("torch.where(x > 0.1, x * x.new_tensor(0.1), torch.tensor(-math.inf))", "x: {}[9,40]"),
        ("torch.index_select(x, 1, i) * 2", "x: {}[9,40], i: i64[20]"),
    ],
)
def test_kernels(compiler: Compiler, expression: str, inputs: str, dtype: str) -> None:
    judged(compiler, problem_of(expression, inputs.format(dtype)))

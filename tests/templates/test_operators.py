"""Operators that are a few operations of the graph, against PyTorch's own."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.templates.recognise import template_for
from tests.harness.checking import ARCH, Compiler, answered, compiled, judged, outputs, problem_of


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
        ("x[i] * 2", "x: {}[90,40], i: i64[4,5]"),  # whose negative indices count from the end
        ("x[:, i] + 1", "x: {}[9,40], i: i32[20]"),
        ("torch.softmax(x, -1) * w[i].unsqueeze(1)", "x: {0}[9,40], w: {0}[50], i: i64[9]"),
    ],
)
def test_kernels(compiler: Compiler, expression: str, inputs: str, dtype: str) -> None:
    judged(compiler, problem_of(expression, inputs.format(dtype)))


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("torch.sin(x)", "x: bf16[9,40]"),  # of 1e-16, and of 1e6
        ("torch.sign(x)", "x: bf16[9,40]"),  # of NaN
    ],
)
def test_functions_at_their_ends(compiler: Compiler, expression: str, inputs: str) -> None:
    problem = problem_of(expression, inputs)
    template = template_for(problem, ARCH)
    found, _ = answered(compiler, problem, template.write(template.default_config()))
    assert found.verdict is Verdict.PASSED, found.reason


def test_the_error_function_of_small_numbers_of_16_bits(compiler: Compiler) -> None:
    problem = problem_of("torch.erf(x)", "x: f16[9,40]", checks=())
    _, artifact = compiled(compiler, problem)
    given = torch.linspace(-1e-4, 1e-4, 360).half().view(9, 40)
    (found,) = outputs(problem, artifact, [given])
    steps = (found.double() - torch.erf(given.double())).abs() / 2.0**-24
    assert float(steps.max()) < 0.6, "one minus what is next to one has lost their last bits"


def test_divergence_of_a_probability_that_the_logarithm_takes_for_none(compiler: Compiler) -> None:
    problem = problem_of("F.kl_div(x, p, reduction='none')", "x: bf16[9,40], p: bf16[9,40]", checks=())
    _, artifact = compiled(compiler, problem)
    x, p = torch.zeros(9, 40).bfloat16(), torch.full((9, 40), 1e-40).bfloat16()
    (found,) = outputs(problem, artifact, [x, p])
    assert float(p.max()) > 0 and float(found.abs().max()) < 1e-37

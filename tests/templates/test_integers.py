"""Integers as inputs and as results of elementwise and row kernels."""

from __future__ import annotations

import pytest

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.templates.frontend.reader import read
from tests.harness.checking import Compiler, judged, problem_of


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("(a.float() * s).to(torch.bfloat16)", "a: i8[8,48], s: f32[8,1]"),
        ("torch.clamp(torch.round(a / s), -128, 127).to(torch.int8)", "a: f32[8,48], s: f32[8,1]"),
        ("(torch.sigmoid(a) * 255).round().to(torch.uint8)", "a: f32[8,48]"),
        ("torch.softmax(a.float(), 1)", "a: i32[8,48]"),
        ("a.sum(1)", "a: i8[8,48]"),
    ],
)
def test_kernels(compiler: Compiler, expression: str, inputs: str) -> None:
    judged(compiler, problem_of(expression, inputs))


@pytest.mark.parametrize(
    ("expression", "inputs", "says"),
    [
        ("a + b", "a: i8[8,48], b: i8[8,48]", "integer arithmetic that may wrap around: aten.add.Tensor"),
        ("a.sum(1)", "a: i16[8,4800]", r"sums of 4800 integers of up to 32768 \(exact only up to 2\*\*24\)"),
        ("(a * 300).to(torch.uint8)", "a: f32[8,48]", r"a cast to uint8 of .* beyond 0 to 255, .* \(clamp them"),
        ("a.sum(1)", "a: i32[8,48]", "integer input a other than as an index, .* or after conversion to float"),
        ("torch.softmax(a, 1)", "a: f64[8,48]", "input a of dtype f64 .supported: bf16, f16, f32, "),
    ],
)
def test_what_fp32_does_not_hold_is_named(expression: str, inputs: str, says: str) -> None:
    with pytest.raises(ProviderError, match=says):
        read(problem_of(expression, inputs))

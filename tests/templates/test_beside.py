"""Tensors side by side, padding, and rolling: each element is read from where it comes from."""

from __future__ import annotations

import pytest

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.templates.recognise import template_for
from tests.harness.checking import Compiler, judged, load_width, problem_of

ROPE = "x * c + torch.cat([-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], -1) * s"


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("torch.cat([x, y], 1)", "x: f32[3,16,8], y: f32[3,24,8]"),
        ("torch.cat([x, y * 3], -1)", "x: bf16[5,16], y: bf16[5,40]"),
        ("torch.cat([x, y, z], 0)", "x: f32[3,16], y: f32[3,16], z: f32[3,16]"),
        (ROPE, "x: bf16[2,3,8,64], c: bf16[8,64], s: bf16[8,64]"),
        ("F.pad(x, (4, 4))", "x: f32[5,16]"),
        ("torch.roll(x, (3, 1), (1, 0))", "x: f32[5,17]"),
    ],
)
def test_one_kernel(compiler: Compiler, expression: str, inputs: str) -> None:
    assert judged(compiler, problem_of(expression, inputs))[0] == "elementwise chain"


def test_padding_by_a_value(compiler: Compiler) -> None:
    problem = problem_of("F.pad(torch.exp(x), (1, 2, 0, 3), value=2.0)", "x: f32[3,5,8]", checks=("long", "single"))
    assert judged(compiler, problem)[0] == "elementwise chain"


def test_vectors_are_as_wide_as_the_seams_allow(compiler: Compiler) -> None:
    problem = problem_of(ROPE, "x: bf16[2,8,64], c: bf16[8,64], s: bf16[8,64]", checks=())
    assert load_width(problem, judged(compiler, problem)[1]) > 256


def test_what_is_reduced_is_put_side_by_side_before() -> None:
    template = template_for(
        problem_of("torch.softmax(torch.cat([x, y], 1), -1)", "x: f32[8,32], y: f32[8,16]"), "sm_90a"
    )
    assert template.name == "elementwise chain, then row reduction"
    with pytest.raises(ProviderError, match="padding in mode reflect"):
        template_for(problem_of("F.pad(x, (2, 2), mode='reflect')", "x: f32[8,32]"), "sm_90a")

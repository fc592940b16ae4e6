"""Rows that no single stride leads through: norms of channels and groups, reductions of dimensions apart, views."""

from __future__ import annotations

import pytest

from tests.harness.checking import Compiler, judged, problem_of


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("F.group_norm(x, 4, w, b)", "x: f32[3,16,4,6], w: f32[16], b: f32[16]"),
        ("F.group_norm(x, 2, w, b)", "x: bf16[2,6,5,3], w: bf16[6], b: bf16[6]"),
        ("F.group_norm(x, 8, w, b)", "x: f32[5,64], w: f32[64], b: f32[64]"),
        ("F.relu(F.instance_norm(x, weight=w, bias=b))", "x: bf16[3,8,4,10], w: bf16[8], b: bf16[8]"),
        ("F.batch_norm(x, None, None, w, b, True)", "x: f32[6,5,4,8], w: f32[5], b: f32[5]"),
        ("F.batch_norm(x, None, None, w, b, True)", "x: f16[6,5,24], w: f16[5], b: f16[5]"),
        ("F.layer_norm(x, x.shape[1:]) * w[:, None]", "x: f32[3,6,40], w: f32[6]"),
        ("x.mean((0, 2, 3))", "x: bf16[6,5,4,8]"),
        ("x.sum((1, 3), keepdim=True) + x", "x: f32[3,4,5,6]"),
        ("torch.softmax(x.view(x.shape[0], 4, -1), -1).view(x.shape)", "x: f32[3,64]"),
    ],
)
def test_rows_in_pieces(compiler: Compiler, expression: str, inputs: str) -> None:
    assert judged(compiler, problem_of(expression, inputs))[0] == "row reduction"


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("x.sum((0, 1))", "x: f32[5,6,24]"),
        ("F.batch_norm(x, None, None, w, b, True)", "x: f32[24,40], w: f32[40], b: f32[40]"),
        ("x - x.amax((0, 2), keepdim=True)", "x: bf16[4,3,5,16]"),
    ],
)
def test_columns_in_pieces(compiler: Compiler, expression: str, inputs: str) -> None:
    assert judged(compiler, problem_of(expression, inputs))[0] == "column reduction"


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("F.batch_norm(x, m, v, w, b)", "x: bf16[3,8,4,6], m: f32[8], v: f32[8], w: f32[8], b: f32[8]"),
        ("x.view(x.shape[0], -1, 8) * s", "x: bf16[6,48], s: f32[8]"),
    ],
)
def test_elements_of_parts(compiler: Compiler, expression: str, inputs: str) -> None:
    assert judged(compiler, problem_of(expression, inputs))[0] == "elementwise chain"

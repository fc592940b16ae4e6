"""The class of work is read from the operators of the exported graph."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from cutegen_lab.providers.prompt_topics import HINTS, WorkClass, work_class
from tests.harness.checking import problem_of

X = "x: f32[8,16]"


@pytest.mark.parametrize(
    ("expression", "inputs", "expected"),
    [
        ("torch.softmax(torch.cumsum(x, -1), -1)", X, "scan"),
        ("x @ w.T", f"{X}, w: f32[4,16]", "matmul"),
        ("F.gelu(F.linear(x, w)).softmax(-1)", f"{X}, w: f32[4,16]", "matmul"),
        ("F.conv2d(x, w)", "x: f32[2,3,8,8], w: f32[4,3,3,3]", "matmul"),
        ("F.scaled_dot_product_attention(x, x, x)", "x: f32[1,2,8,16]", "matmul"),
        ("F.avg_pool2d(x, 2)", "x: f32[2,3,8,8]", "pooling"),
        ("F.adaptive_max_pool1d(x, 4)", "x: f32[2,3,8]", "pooling"),
        ("torch.softmax(x, dim=-1)", X, "row reduction"),
        ("torch.softmax(x, dim=1)", X, "row reduction"),
        ("x / x.norm(dim=-1, keepdim=True)", X, "row reduction"),
        ("F.layer_norm(x, (16,))", X, "row reduction"),
        ("(x - x.mean()) / x.std()", X, "row reduction"),
        ("x - x.mean(0)", X, "column reduction"),
        ("torch.softmax(x, dim=0)", X, "column reduction"),
        ("x.amax((0, 2), keepdim=True)", "x: f32[4,8,16]", "row reduction"),
        ("x.max(1).values", "x: f32[4,8,16]", "column reduction"),
        ("F.batch_norm(x, None, None, training=True)", X, "column reduction"),
        ("F.batch_norm(x, None, None, training=True)", "x: f32[2,3,8,8]", "row reduction"),
        ("F.batch_norm(x, m, v)", f"{X}, m: f32[16], v: f32[16]", "elementwise"),
        ("F.cosine_similarity(x, x)", X, "row reduction"),
        ("x.sum(0) + x.sum()", X, "row reduction"),
        ("torch.maximum(x, y) + torch.max(x, y)", f"{X}, y: f32[8,16]", "elementwise"),
        ("torch.relu(x)  # max, sum and x @ y are only words here", X, "elementwise"),
        ("x.T.contiguous()", X, "elementwise"),
    ],
)
def test_work_class(expression: str, inputs: str, expected: WorkClass) -> None:
    assert work_class(problem_of(expression, inputs)) == expected


def test_names_that_hide_the_work_do_not_matter() -> None:
    problem = problem_of("torch.softmax(x, -1)", X)
    source = problem.source.replace("torch.softmax(x, -1)", "getattr(x, 'soft' + 'max')(-1)")
    assert source != problem.source and work_class(replace(problem, source=source)) == "row reduction"


def test_what_cannot_be_exported_has_a_hint_too() -> None:
    problem = problem_of("x * 2", X)
    source = problem.source.replace("x * 2", "x * 2 if float(x.sum()) > 0 else x")
    assert source != problem.source and work_class(replace(problem, source=source)) == "other"


def test_every_class_has_a_hint() -> None:
    assert set(HINTS) == set(get_args(WorkClass))

"""The class of work is read from what a reference calls."""

from __future__ import annotations

import pytest

from cutegen_lab.providers.prompt_topics import HINTS, WorkClass, work_class


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("torch.cumsum(x * m, dim=-1)", "scan"),
        ("torch.softmax(torch.cumsum(x, -1), -1)", "scan"),
        ("x @ w.T", "matmul"),
        ("F.gelu(F.linear(x, w))", "matmul"),
        ("torch.softmax(x, dim=-1)", "row reduction"),
        ("x / x.norm(dim=-1, keepdim=True)", "row reduction"),
        ("torch.relu(x) * 2  # max, sum and x @ y are only words here", "elementwise"),
        ("'''softmax(x)''' and x", "elementwise"),
        ("not python (", "elementwise"),
    ],
)
def test_work_class(body: str, expected: WorkClass) -> None:
    assert work_class(f"def reference(x, w=None, m=None):\n    return {body}\n") == expected


def test_decorators_are_not_matrix_products() -> None:
    assert work_class("@torch.no_grad()\ndef reference(x):\n    return x.abs()\n") == "elementwise"


def test_every_class_has_a_hint() -> None:
    assert set(HINTS) == {"scan", "matmul", "row reduction", "elementwise"}

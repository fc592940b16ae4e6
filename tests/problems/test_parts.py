"""Derived shapes keep what a reference cuts into equal parts: half of a head stays half of it."""

from __future__ import annotations

import pytest

from cutegen_lab.problems import read_text

Q = "q: bf16[2,8,321,64], cos: f32[321,64], sin: f32[321,64]"
ROPE = """
def reference(q, cos, sin):
    h = q.float()
    {cut}
    return (h * cos + torch.cat((-b, a), -1) * sin).to(q.dtype)
"""
LITERAL = "a, b = h[..., :32], h[..., 32:]"
CUTS = {
    "literal": LITERAL,
    "half": "half = q.shape[-1] // 2; a, b = h[..., :half], h[..., half:]",
    "chunk": "a, b = h.chunk(2, -1)",
    "split": "a, b = h.split(q.shape[-1] // 2, -1)",
}


@pytest.mark.parametrize("cut", CUTS)
def test_halves_stay_halves(cut: str) -> None:
    problem = read_text(ROPE.format(cut=CUTS[cut]), inputs_text=Q)
    heads = {workload.inputs[0].shape[-1] for workload in problem.check_workloads}
    assert len(problem.check_workloads) >= 3
    assert heads == {64} if cut == "literal" else all(size % 2 == 0 for size in heads) and len(heads) > 1, heads
    rows = {workload.inputs[0].shape[-2] for workload in problem.check_workloads}
    assert any(size % 2 for size in rows), "other axes are ragged as before"


def test_thirds_stay_thirds() -> None:
    text = "def reference(x):\n    q, k, v = x.split(x.shape[-1] // 3, -1)\n    return q * k + v\n"
    problem = read_text(text, inputs_text="x: f32[300,1536]")
    sizes = {workload.inputs[0].shape[-1] for workload in problem.check_workloads}
    assert len(problem.check_workloads) >= 3 and all(size % 3 == 0 for size in sizes), sizes


def test_a_slice_that_is_no_part_changes_nothing() -> None:
    problem = read_text("def reference(x):\n    return x[:, 1:] - x[:, :-1]\n", inputs_text="x: f32[300,1024]")
    assert {w.name for w in problem.check_workloads} >= {"prime", "tail", "one_row"}

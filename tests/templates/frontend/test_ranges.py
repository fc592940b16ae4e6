"""Limits that values are sure to stay within: never tighter than what PyTorch computes."""

from __future__ import annotations

import math

import pytest
import torch

from cutegen_lab.templates.frontend.ranges import range_of
from cutegen_lab.templates.frontend.reader import read
from tests.harness.checking import problem_of


@pytest.mark.parametrize(
    ("expression", "least", "largest"),
    [
        ("torch.clamp(torch.round(a / 0.1), -128, 127)", -128, 127),
        ("torch.sigmoid(a) * 255 - 3", -3, 252),
        ("torch.where(a > 0, torch.tanh(a), torch.full_like(a, 7.0))", -1, 7),
        ("torch.relu(a)", 0, math.inf),
        ("-torch.clamp(a, max=2.6).floor()", -2, math.inf),
        ("torch.sin(a) + torch.cos(a)", -2, 2),
        ("torch.amax(torch.tanh(a), 1)", -1, 1),
        ("a * torch.tanh(a)", -math.inf, math.inf),
    ],
)
def test_limits(expression: str, least: float, largest: float) -> None:
    graph = read(problem_of(expression, "a: f32[8,48]"))
    assert range_of(graph.nodes, graph.outputs[0].node) == (least, largest)
    a = 100 * torch.randn(8, 48)
    got = eval(expression, {"torch": torch, "a": a})  # noqa: S307 (the table's own text)
    assert got.min() >= least
    assert got.max() <= largest

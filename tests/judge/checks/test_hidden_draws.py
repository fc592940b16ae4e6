"""Inputs of which a reference makes little but NaN are left out, always or never: the list of draws is no coin toss."""

from __future__ import annotations

import threading

import pytest
import torch

from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.draws.names import HIDDEN, HIDDEN_ABOVE
from cutegen_lab.judge.judge import StandardJudge
from cutegen_lab.problems import Reference, read_text
from tests.judge.torch_device import TorchDevice, artifact_for


def draws(expression: str) -> set[str]:
    problem = read_text(f"def reference(x):  # x: f32[40,64]\n    return {expression}\n")
    reference = Reference(problem)

    def run(x: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(reference.run([x])[0])

    device = TorchDevice(run)
    found = StandardJudge().check(problem, artifact_for(problem, device), device, lambda line: None, threading.Event())
    assert found.verdict is Verdict.PASSED, found.reason
    return {check.distribution for check in found.checks}


@pytest.mark.parametrize(
    ("expression", "left_out"),
    [("torch.softmax(x, -1)", HIDDEN_ABOVE), ("torch.softmax(-x, -1)", HIDDEN), ("x * 2", None)],
)
def test_it_does_not_depend_on_the_seed(expression: str, left_out: str | None) -> None:
    for _ in range(4):
        names = draws(expression)
        assert {HIDDEN, HIDDEN_ABOVE} - names == ({left_out} if left_out else set())

"""What is known of a reference's formula from the operators that it calls."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from cutegen_lab.judge.rounding.formula import run_and_classify
from tests.judge.honest import Function


@pytest.mark.parametrize(
    ("function", "known"),
    [
        (lambda x: torch.where(x > 0, x, torch.sigmoid(x)), True),
        (lambda x: torch.where((x.abs() > 1) & ~(x[:, :1] == 0), x, F.softplus(x)), True),
        (lambda x: F.elu(x, 0.5) * F.leaky_relu(x, 0.1), True),
        (lambda x: torch.where(torch.sigmoid(x) > 0.5, x, torch.sigmoid(x)), False),
        (lambda x: torch.where((x + 1)[:, 1:] > 0, x[:, 1:], torch.sigmoid(x[:, 1:])), False),
        (lambda x: torch.where(x.to(torch.float16) > 0.3, x, torch.sigmoid(x)), False),
        (lambda x: x.clone().mul_(2).relu_().gt(0.3) * torch.sigmoid(x), False),
        (lambda x: torch.sigmoid(x).round(), False),
    ],
)
def test_a_loss_is_known_if_only_unrounded_numbers_are_compared(function: Function, known: bool) -> None:
    x = torch.linspace(-2, 2, 32).reshape(4, 8)
    assert run_and_classify(lambda: (function(x),))[1].known_loss is known

"""References in float64: every type that they leave to PyTorch's default too, and nobody else's."""

from __future__ import annotations

import threading

import pytest
import torch

from cutegen_lab.problems import Reference, read_text

INPUTS = "x: f32[6,5], n: i32[6,5], mask: bool[6,5]"


def outputs(expression: str) -> torch.Tensor:
    problem = read_text(f"def reference(x, n, mask):\n    return {expression}\n", inputs_text=INPUTS)
    x = torch.arange(30.0).view(6, 5)
    return Reference(problem).run_float64([x, torch.arange(30, dtype=torch.int32).view(6, 5), x > 7])[0]


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("x + torch.tensor(0.1)", 0.1),
        ("x + torch.full((5,), 0.1)", 0.1),
        ("torch.zeros(6, 5) + torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5])", 0.1),
        ("x + torch.arange(0.1, 0.5, 0.1)[:1]", 0.1),
        ("x + torch.linspace(0.1, 1, 5)", 0.1),
        ("(n + 1) / 3 + x", 1 / 3),
        ("(n + 1) * 0.1 + x", 0.1),
        ("(n + 2).sqrt() + x", 2**0.5),
        ("torch.where(mask, 0.5, 0.1) + x", 0.1),
        ("x + torch.stack([torch.tensor(0.1), torch.tensor(0.2)])[0]", 0.1),
        ("x.new_full((6, 5), 0.1)", 0.1),
        ("torch.full_like(x, 0.1, dtype=torch.float32)", 0.1),
    ],
)
def test_what_has_no_type_of_its_own_is_float64(expression: str, first: float) -> None:
    out = outputs(expression)
    assert out.dtype is torch.float64 and out[0, 0].item() == pytest.approx(first, rel=1e-15)


def test_something_changed_in_place_is_changed_once() -> None:
    assert outputs("torch.zeros(6, 5).add_(1) + torch.zeros(6, 5, dtype=torch.int32).add_(n).add_(1)")[0, 1] == 3


def test_the_default_is_what_it_was_whoever_ran_at_once() -> None:
    """Two runs of one notebook judge at once."""
    loop = "    for _ in range(300):\n        x = x + torch.zeros(3) + torch.tensor(0.5)\n"
    text = f"def reference(x):\n{loop}    return x\n"
    problem = read_text(text, inputs_text="x: f32[3]")
    references = [threading.Thread(target=Reference(problem).run_float64, args=([torch.zeros(3)],)) for _ in range(4)]
    for thread in references:
        thread.start()
    for thread in references:
        thread.join()
    assert torch.get_default_dtype() is torch.float32

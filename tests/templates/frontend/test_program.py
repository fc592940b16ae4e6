"""References as torch.export has them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from cutegen_lab.problems import read_text
from cutegen_lab.templates.recognise import template_for


def test_problems_are_read_on_several_threads() -> None:
    """As a notebook's cells do, while the runs of others are at work."""

    def served(number: int) -> str:
        text = f"def reference(x):\n    return torch.softmax(x * {number}, -1) + F.gelu(x)\n"
        return template_for(read_text(text, inputs_text=f"x: f32[{number + 2},64]"), "sm_90a").name

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(served, range(12))) == {"row reduction"}

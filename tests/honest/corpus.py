"""Honest kernels: those written by hand (``kernels/NAME.py`` for ``problems/NAME.py``) and those the templates write.

All of them must pass. A judge that rejects one is as broken as a judge that accepts a cheat (``tests/cheats``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.honest.generated import CASES, write

FOLDER = Path(__file__).parent

_ORDER = "the error budget does not grow with a sum's length: one fp32 accumulator over it is over the floor of 1e-6"
_EXACT = "integers that follow from rounded floats are compared exactly with float64's, not with PyTorch's own"
# Honest kernels that the judge rejects today. Each is a defect of the judge, and its line goes when the defect does.
REJECTED_TODAY = {
    "matmul_long_sums": _ORDER,
    "column_sum_deep": _ORDER,
    "quantize_int8": _EXACT,
    "threshold_in_bf16": _EXACT,
    "finfo_mask": "torch.finfo is float64's in the float64 reference; its least number overflows the comparison to NaN",
}


class Honest(NamedTuple):
    """One kernel and the problem it solves. ``inputs``: the --inputs text, empty where the problem declares its own."""

    name: str
    problem: str
    inputs: str
    source: str


def names() -> list[str]:
    """Every kernel's name, without writing or reading any of them."""
    return [*_written_by_hand(), *CASES]


def honest(name: str) -> Honest:
    """Raises KeyError for an unknown name."""
    if name in CASES:
        case = CASES[name]
        return Honest(name, case.problem, case.inputs, write(name, case))
    if name not in _written_by_hand():
        raise KeyError(name)
    problem, kernel = (FOLDER / folder / f"{name}.py" for folder in ("problems", "kernels"))
    return Honest(name, problem.read_text(), "", kernel.read_text())


def corpus() -> Iterator[Honest]:
    """All of it, one after another."""
    return map(honest, names())


def _written_by_hand() -> list[str]:
    return sorted(path.stem for path in (FOLDER / "kernels").glob("*.py"))

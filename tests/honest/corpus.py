"""Honest kernels: those written by hand (``kernels/NAME.py`` for ``problems/NAME.py``) and those the templates write.

All of them must pass. A judge that rejects one is as broken as a judge that accepts a cheat (``tests/cheats``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.honest.generated import CASES, write

FOLDER = Path(__file__).parent

# Honest kernels that the judge rejects today, with the reason: each is a defect of the judge.
REJECTED_TODAY: dict[str, str] = {}


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

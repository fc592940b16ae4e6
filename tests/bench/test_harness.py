"""A script's command line is the signatures of its functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from benchmarks.harness import command_line

CALLS: list[Any] = []


def write(folder: Path, size: int = 4, *, only: Literal["a", "b"] | None = None, deep: bool = False) -> None:
    CALLS.append((folder, size, only, deep))


def rank(out: Path, *counts: int, part: tuple[str, ...] = ("x", "y"), more_of: tuple[str, ...] = ()) -> int:
    CALLS.append((out, counts, part, more_of))
    return 3


def status(monkeypatch: pytest.MonkeyPatch, words: str) -> Any:
    """The exit status of a script that has both commands, after ``words``."""
    CALLS.clear()
    monkeypatch.setattr("sys.argv", ["script", *words.split()])
    with pytest.raises(SystemExit) as ended:
        command_line(write, rank)
    return ended.value.code


@pytest.mark.parametrize(("words", "called"), [
    ("write here", (Path("here"), 4, None, False)),
    ("write here 5 --only b --deep", (Path("here"), 5, "b", True)),
    ("rank out 1 2", (Path("out"), (1, 2), ("x", "y"), ())),
    ("rank out --part y --more-of p q --more-of r", (Path("out"), (), ["y"], ["p", "q", "r"])),
])  # fmt: skip
def test_words_become_arguments(monkeypatch: pytest.MonkeyPatch, words: str, called: tuple[Any, ...]) -> None:
    assert status(monkeypatch, words) == (3 if words.startswith("rank") else None) and [called] == CALLS


@pytest.mark.parametrize("words", ["", "judge here", "write", "write a five", "write a --only c", "rank o --part z"])
def test_what_a_command_does_not_take_is_refused(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    assert status(monkeypatch, words) == 2 and not CALLS

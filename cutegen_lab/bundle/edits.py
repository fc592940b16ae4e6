"""Edits of a text, applied together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Replaces characters [first, last) of a file with ``text``."""

    first: int
    last: int
    text: str


def edited(text: str, first: int, last: int, edits: Iterable[Edit]) -> tuple[str, list[int]]:
    """Characters [first, last) of ``text`` after ``edits``, and the original line of each resulting line. Of nested
    edits only the outer one is applied."""
    parts: list[str] = []
    starts, at = [first], first
    for edit in [*sorted(set(edits), key=lambda e: (e.first, -e.last)), Edit(last, last, "")]:
        if edit.first < at or edit.last > last:
            continue
        parts += [text[at : edit.first], edit.text]
        starts += [i + 1 for i in range(at, edit.first) if text[i] == "\n"]
        if starts[-1] == edit.first and edit.text[-1:] in ("", "\n"):  # the edit removes whole lines
            starts[-1] = edit.last
        starts += [edit.first] * edit.text.count("\n")
        at = edit.last
    whole = "".join(parts).rstrip()
    return whole, starts[: whole.count("\n") + 1]

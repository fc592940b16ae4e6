"""Remarks of ptxas on a build: spilled registers, stack use, serialised wgmma.

The DSL prints them in colour, wrapped, on the build's output; only kernels with remarks appear. The text passed through
the candidate's process, so it may explain but not decide: register counts and stack sizes come from the cubin
(:mod:`cutegen_lab.compile.resources`), and a remark that contradicts it is dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cutegen_lab.core.verdict import Diagnostic

MAX_NOTES = 20
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_USE = re.compile(
    r"Function properties for (\S+) ptxas \. (\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_REMARK = re.compile(r"^remark\[ptxas\]:\s*(.+)$", re.M)
_PLACE = re.compile(r"-->[ \t]{0,20}\S{0,300}candidate\.py:(\d{1,7})")
_SUGGESTION = re.compile(r"suggestion:\s*(.+?)(?:\n\S|\n\n|\Z)", re.S)


@dataclass(frozen=True)
class StackUse:
    """Stack use of a thread, as ptxas reports it."""

    frame: int
    """Bytes of the stack frame."""
    spill_stores: int
    """Bytes of spill stores."""
    spill_loads: int
    """Bytes of spill loads."""


def stack_use(output: str) -> dict[str, StackUse]:
    """Stack use by kernel name, for the kernels with remarks."""
    text = " ".join(_ANSI.sub("", output).split())
    return {m[1]: StackUse(int(m[2]), int(m[3]), int(m[4])) for m in _USE.finditer(text)}


def remark_notes(output: str) -> tuple[Diagnostic, ...]:
    """Each distinct remark once, with the candidate line if ptxas had one."""
    text = _ANSI.sub("", output)
    starts = list(_REMARK.finditer(text))
    notes: dict[tuple[str, int], Diagnostic] = {}
    for index, start in enumerate(starts[: 10 * MAX_NOTES]):
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        body = text[start.start() : end]
        place, advice = _PLACE.search(body), _SUGGESTION.search(body)
        line = int(place[1]) if place else 0
        suggestion = " ".join(advice[1].split())[:400] if advice else ""
        notes.setdefault((start[1], line), Diagnostic("note", "PTXAS", start[1][:300], line, suggestion=suggestion))
    return tuple(notes.values())[:MAX_NOTES]

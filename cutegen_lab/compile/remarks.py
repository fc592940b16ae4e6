"""What ptxas remarks on a build: spilled registers, stack use, serialised wgmma.

The DSL prints ptxas's remarks in colour, wrapped, on the build's output; only kernels that ptxas has something to say
about appear. The text passed through the candidate's process, so it explains and never decides: register counts and
stack sizes come from the cubin (:mod:`cutegen_lab.compile.resources`), and a remark that contradicts it is dropped.
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
    """Bytes a thread, as ptxas counts them."""

    frame: int
    spill_stores: int
    spill_loads: int


def stack_use(output: str) -> dict[str, StackUse]:
    """By kernel name, for the kernels ptxas remarked on."""
    text = " ".join(_ANSI.sub("", output).split())
    return {m[1]: StackUse(int(m[2]), int(m[3]), int(m[4])) for m in _USE.finditer(text)}


def remark_notes(output: str) -> tuple[Diagnostic, ...]:
    """Each different remark once, with the candidate line where ptxas's debug information had one."""
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

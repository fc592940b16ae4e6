"""Diff of a candidate's source to its parent's, without long unchanged parts."""

from __future__ import annotations

from difflib import SequenceMatcher

from cutegen_lab.views.model import DiffLine
from cutegen_lab.views.units import plural

CONTEXT = 3


def source_diff(old: str | None, new: str, context: int = CONTEXT) -> list[DiffLine]:
    """Lines of ``new`` compared with ``old``, with ``context`` unchanged lines around each change; [] without a parent.

    Line numbers start at 1. Equal texts give a single gap, which shows that nothing changed.
    """
    if old is None:
        return []
    before, after = old.splitlines(), new.splitlines()
    out: list[DiffLine] = []
    done = 0  # lines of ``before`` already handled
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(context):
        out += _gap(group[0][1] - done)
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                out += [DiffLine(kind="same", text=before[i], old=i + 1, new=j1 + i - i1 + 1) for i in range(i1, i2)]
                continue
            out += [DiffLine(kind="removed", text=before[i], old=i + 1) for i in range(i1, i2)]
            out += [DiffLine(kind="added", text=after[j], new=j + 1) for j in range(j1, j2)]
        done = group[-1][2]
    return out + _gap(len(before) - done)


def _gap(lines: int) -> list[DiffLine]:
    return [DiffLine(kind="gap", text=f"{plural(lines, 'unchanged line')}")] if lines > 0 else []

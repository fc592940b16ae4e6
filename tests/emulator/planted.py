"""Kernels with a planted bug and their correct twins, both written as one text.

``<part>`` stands in the twin only. ``<wrong|right>`` is ``wrong`` in the planted bug and ``right`` in the twin. The
comment ``// FAULT`` marks the line at which the fault is to be reported, ``// EARLIER`` the access that conflicts.
"""

from __future__ import annotations

import re

from cutegen_lab.core.artifact import SourceLine


def variant(body: str, fixed: bool) -> str:
    """The twin's text (``fixed``) or the planted bug's."""

    def chosen(match: re.Match[str]) -> str:
        wrong, _, right = match[1].rpartition("|")
        return right if fixed else wrong

    return re.sub(r"<(.*?)>", chosen, body, flags=re.S)


def ptx_lines(ptx: str) -> list[SourceLine]:
    """A line table that takes the PTX for the candidate's source: a fault's line is then a line of the PTX."""
    return [SourceLine(n, n) for n in range(1, ptx.count("\n") + 2)]


def line_of(ptx: str, mark: str) -> int:
    """The line with the comment ``// mark``."""
    return next(n for n, line in enumerate(ptx.split("\n"), 1) if f"// {mark}" in line)

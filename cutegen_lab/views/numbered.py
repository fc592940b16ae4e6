"""A text with numbered lines and, next to each line, its share of the resource that limits the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.views.model import CandidateView


@dataclass(frozen=True)
class NumberedLine:
    """A line of a shown text."""

    number: int
    """Number of the line, from 1."""
    text: str
    """The line."""
    share: float = 0.0
    """Its value in the first heat column, relative to the hottest line: 0 to 1."""
    title: str = ""
    """Its share of every column, in words; empty for a line that costs nothing."""


def numbered_lines(candidate: CandidateView) -> list[NumberedLine]:
    """The lines of ``candidate.source``; without heat where there is no profile."""
    columns = candidate.heat
    hottest = max(columns[0].lines.values(), default=0.0) if columns else 0.0
    found = []
    for number, text in enumerate(candidate.source.splitlines(), 1):
        shares = [(c.label, c.lines.get(number, 0.0) / c.total) for c in columns if c.total]
        title = ", ".join(f"{label} {share:.1%}" for label, share in shares if share)
        value = columns[0].lines.get(number, 0.0) if columns else 0.0
        found.append(NumberedLine(number, text, value / hottest if hottest else 0.0, title))
    return found

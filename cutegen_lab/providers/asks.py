"""The analyst's comments and pins in the words of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cutegen_lab.core.candidate import Candidate
from cutegen_lab.core.notes import Note
from cutegen_lab.core.pins import place_in
from cutegen_lab.core.plain_text import continued
from cutegen_lab.core.protocols import GenerateRequest

_QUOTED = 40  # maximum number of lines of a quote


@dataclass(frozen=True)
class Ask:
    """One comment or pin."""

    pin: bool
    """True for a pin, False for a comment."""
    head: str
    """Line of the prompt that says what the analyst asks, and where."""
    words: str
    """The analyst's text; lines after the first are indented, so that none looks like a line of the prompt."""
    quote: str
    """The text of the candidate that it refers to."""


def asks(request: GenerateRequest) -> list[Ask]:
    """The request's comments and pins; pins first, since an answer that breaks one is refused."""
    known = {attempt.candidate.id: attempt.candidate for attempt in request.history}
    parent = request.parent.candidate if request.parent else None
    notes = sorted((note for note in request.notes if note.candidate_id in known), key=lambda note: not note.pin)
    return [Ask(note.pin, _head(note, known, parent), continued(note.text, "  "), _cut(note.quote)) for note in notes]


def _head(note: Note, known: Mapping[str, Candidate], parent: Candidate | None) -> str:
    where = "" if parent is None or parent.id == note.candidate_id else _in_parent(note, known, parent)
    return f"Keep {note.what}{where} as it is" if note.pin else f"On {note.what}{where}"


def _in_parent(note: Note, known: Mapping[str, Candidate], parent: Candidate) -> str:
    if note.name:
        return ""
    place = place_in(note, known[note.candidate_id], parent.proposal)
    if place is None:
        return f" (not in {parent.id}, the candidate above)"
    lines = f"line {place[0]}" if place[0] == place[1] else f"lines {place[0]}–{place[1]}"
    return f" ({lines} of {parent.id}, the candidate above)"


def _cut(quote: str) -> str:
    lines = quote.split("\n")
    return quote if len(lines) <= _QUOTED else "\n".join([*lines[:_QUOTED], f"# … {len(lines) - _QUOTED} more lines"])

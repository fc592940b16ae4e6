"""Comments of the analyst on a candidate's text, and pins: comments on what later candidates must leave as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_lab.core.errors import InputError

USAGE = "Write c2:10-14 for lines 10 to 14 of c2, c2:epilogue for a function, or c2:stages for a parameter."
_PLACE = re.compile(
    r"(?:(?P<candidate>[^:\s]+):)?"
    r"(?:(?P<first>\d{1,7})(?:[-–](?P<last>\d{1,7}))?|(?P<name>[^\W\d][\w.]*))"
)


@dataclass(frozen=True)
class Place:
    """What a note is about: lines of a candidate's text, or a named part of it."""

    candidate_id: str = ""
    """The candidate; empty for the current one."""
    first: int = 0
    """First line, from 1; 0 for a named place."""
    last: int = 0
    """Last line."""
    name: str = ""
    """A parameter, function, class or assigned name."""


@dataclass(frozen=True)
class Note:
    """A comment, or a pin."""

    id: str
    """Unique within its run: ``n1``, ``n2``, …"""
    candidate_id: str
    """Candidate whose text the note is about."""
    text: str
    """The analyst's words."""
    first: int
    """First line of the candidate's own text, from 1; 0 for a parameter that has no line."""
    last: int
    """Last line."""
    quote: str
    """Text of the lines, or ``stages = 3`` for a parameter."""
    name: str = ""
    """Name of the part that the note is about; empty for lines."""
    pin: bool = False
    """Whether the note is a pin, against which later candidates are checked."""

    @property
    def what(self) -> str:
        """ "lines 10–14 of c2", "`epilogue` of c2"."""
        if self.name:
            return f"`{self.name}` of {self.candidate_id}"
        lines = f"line {self.first}" if self.first == self.last else f"lines {self.first}–{self.last}"
        return f"{lines} of {self.candidate_id}"


def place_of(text: str) -> Place:
    """Reads ``c2:10-14``, ``10``, ``c2:stages`` or ``epilogue``. Raises InputError for other text."""
    found = _PLACE.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{text!r} is neither lines nor a name of a candidate" if text else "no place is named", USAGE)
    first = int(found["first"] or 0)
    last = int(found["last"] or first)
    if not found["name"] and not 1 <= first <= last:
        raise InputError(f"there are no lines {first} to {last}", USAGE)
    return Place(found["candidate"] or "", first, last, found["name"] or "")


def place_text(candidate_id: str, lines: Sequence[int], name: str) -> str:
    """A place as the text that :func:`place_of` reads. Raises InputError unless either one or two ``lines`` or a
    ``name`` is given."""
    if bool(lines) == bool(name) or len(lines) > 2:
        raise InputError("a note is on either lines or a name", 'Write lines=(10, 14), lines=(10,) or name="stages".')
    where = name or "-".join(map(str, lines))
    return f"{candidate_id}:{where}" if candidate_id else where

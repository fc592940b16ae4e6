"""Edits of a candidate's lines in a model's answer: blocks that name the lines to replace, and what to put there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

EDIT_BLOCK = "edit"
_SEARCH, _MIDDLE, _REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
MOST_EDITS = 1000
_QUOTED = 100  # maximum number of characters of a quoted line


class EditError(ValueError):
    """Edits that cannot be applied; the message can be sent back to the model."""


@dataclass(frozen=True)
class LineEdit:
    """One edit."""

    search: tuple[str, ...]
    """Consecutive lines of the candidate."""
    replace: tuple[str, ...]
    """Lines to put there; none deletes."""
    within: tuple[str, ...] = ()
    """How lines begin that stand above, one after another, such as ``def f(x):``; then the first place below counts."""


def read_edits(blocks: Iterable[str]) -> list[LineEdit]:
    """The edits in ``blocks``, each with at least one of the form ``<<<<<<< SEARCH``, lines, ``=======``, lines,
    ``>>>>>>> REPLACE``. Raises EditError."""
    return [edit for block in blocks for edit in _of_block(block.split("\n"))]


def apply_edits(source: str, edits: Iterable[LineEdit]) -> str:
    """``source`` with all ``edits``, whose lines are those of ``source`` itself, also after another edit. Spaces at the
    ends of lines do not matter. Raises EditError for lines that ``source`` does not have, or has more than once, for
    edits that overlap, and for more than :data:`MOST_EDITS`."""
    edits = list(edits)
    if len(edits) > MOST_EDITS:
        raise EditError(f"the answer has {len(edits):,} edits, more than {MOST_EDITS}; give the whole module")
    lines = source.split("\n")  # the ends of lines that Python has; splitlines() has more
    plain = [line.rstrip() for line in lines]
    places = sorted(
        ((*_place(plain, edit, number), edit, number) for number, edit in enumerate(edits, 1)), key=lambda each: each[0]
    )
    for (_, end, _, one), (start, _, _, other) in pairwise(places):
        if start < end:
            raise EditError(f"edits {min(one, other)} and {max(one, other)} are of the same lines")
    for start, end, edit, _ in reversed(places):
        lines[start:end] = edit.replace
    return "\n".join(lines)


def _of_block(lines: list[str]) -> Iterator[LineEdit]:
    marks = [(at, line.rstrip()) for at, line in enumerate(lines) if line.rstrip() in (_SEARCH, _MIDDLE, _REPLACE)]
    if not marks or len(marks) % 3:
        raise EditError(f"an {EDIT_BLOCK} block is not `{_SEARCH}`, lines, `{_MIDDLE}`, lines, `{_REPLACE}`")
    for (first, a), (middle, b), (last, c) in zip(marks[::3], marks[1::3], marks[2::3], strict=True):
        if (a, b, c) != (_SEARCH, _MIDDLE, _REPLACE):
            raise EditError(f"an {EDIT_BLOCK} block has `{a}`, `{b}`, `{c}` in this order")
        yield LineEdit(tuple(lines[first + 1 : middle]), tuple(lines[middle + 1 : last]))


def _place(lines: list[str], edit: LineEdit, number: int) -> tuple[int, int]:
    """Numbers of the first line and of the one after the last that ``edit`` replaces."""
    wanted = [line.rstrip() for line in edit.search]
    if not any(wanted):
        raise EditError(f"edit {number} has no line to search for: name the line beside which it inserts")
    size = len(wanted)
    above = 0
    for begins in edit.within:
        below = [at for at in range(above, len(lines)) if lines[at].strip().startswith(begins)]
        same = [at for at in below if lines[at].strip() == begins]
        if not below:
            raise _no_line(begins, lines, number)
        if not same and len(below) > 1:
            raise EditError(f"edit {number}: {len(below)} lines begin with `{begins[:_QUOTED]}`; give the whole line")
        above = (same or below)[0] + 1
    places = range(above, len(lines) - size + 1)
    found = [at for at in places if lines[at] == wanted[0] and lines[at : at + size] == wanted]
    if len(found) == 1 or (found and edit.within):
        return found[0], found[0] + size
    if found:
        raise EditError(f"edit {number}: its lines stand {len(found)} times in the candidate; give more of them")
    missing = next((line for line in wanted if line not in lines), None)
    if missing is None:
        raise EditError(f"edit {number}: its lines do not stand one after another in the candidate")
    raise _no_line(missing, lines, number)


def _no_line(missing: str, lines: list[str], number: int) -> EditError:
    shown = missing.strip()[:_QUOTED]
    if any(line.strip() == missing.strip() for line in lines):
        return EditError(f"edit {number}: the candidate has `{shown}` with another indentation")
    near = difflib.get_close_matches(shown, [line.strip()[:_QUOTED] for line in lines], 1, 0.7)
    return EditError(f"edit {number}: the candidate has no line `{shown}`" + (f"; it has `{near[0]}`" if near else ""))

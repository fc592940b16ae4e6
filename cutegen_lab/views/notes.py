"""Comments and pins as a candidate shows them: where they are in its text now, and whether it keeps what is pinned."""

from __future__ import annotations

from cutegen_lab.core.candidate import Candidate
from cutegen_lab.core.notes import Note
from cutegen_lab.core.pins import broken, place_in
from cutegen_lab.core.run import RunState
from cutegen_lab.views.model import NoteState, NoteView


def note_views(candidate: Candidate, state: RunState) -> list[NoteView]:
    """The notes on this candidate and on older ones, pins first."""
    known = list(state.candidates)
    older = set(known[: known.index(candidate.id) + 1])
    found = [note for note in state.notes.values() if note.candidate_id in older]
    return [_view(note, candidate, state) for note in sorted(found, key=lambda note: not note.pin)]


def _view(note: Note, candidate: Candidate, state: RunState) -> NoteView:
    anchor = state.candidates[note.candidate_id]
    place = place_in(note, anchor, candidate.proposal)
    first, last = place or (0, 0)
    return NoteView(
        id=note.id, candidate_id=note.candidate_id, pin=note.pin, text=note.text, what=note.what, quote=note.quote,
        first=first, last=last, state=_state(note, anchor, candidate, gone=place is None),
    )  # fmt: skip


def _state(note: Note, anchor: Candidate, candidate: Candidate, gone: bool) -> NoteState:
    if note.pin:
        return "broken" if broken(note, anchor, candidate.proposal) else "kept"
    return "gone" if gone and note.first else "open"

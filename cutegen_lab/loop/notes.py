"""Comments, pins and ideas of a run: their events and the effect of these. Pure functions.

Illegal comments and pins raise InputError.
"""

from __future__ import annotations

from dataclasses import replace

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.notes import Note, place_of
from cutegen_lab.core.pins import broken_pins, noted_place
from cutegen_lab.core.run import GivenIdea, IdeasGiven, Noted, NoteLifted, RunState, Step
from cutegen_lab.core.verbs import NoteVerb
from cutegen_lab.core.verdict import Diagnostic, Verdict


def note_event(state: RunState, verb: NoteVerb, argument: str, words: str) -> Noted | NoteLifted:
    """The event of a verb. ``argument`` is a place for ``comment`` and ``pin``
    (:func:`~cutegen_lab.core.notes.place_of`), the id of a comment or pin for ``lift``. Raises InputError."""
    if verb == "lift":
        return NoteLifted(argument.strip())
    place = place_of(argument)
    chosen = place.candidate_id or state.current_id or state.incumbent_id or ""
    candidate = state.candidates.get(chosen)
    if candidate is None:
        known = ", ".join(state.candidates) or "none yet"
        raise InputError(f"cannot {verb}: there is no candidate {chosen}".rstrip(), f"Candidates: {known}.")
    if verb == "comment" and not words.strip():
        raise InputError("the comment is empty", "Say what should be different at this place.")
    first, last, quote = noted_place(candidate, place, pin=verb == "pin")
    number = f"n{state.notes_made + 1}"
    return Noted(Note(number, chosen, words.strip(), first, last, quote, place.name, verb == "pin"))


def noted(state: RunState, event: Noted) -> RunState:
    note = event.note
    if note.id in state.notes or note.candidate_id not in state.candidates:
        raise InputError(f"note {note.id} on {note.candidate_id} does not fit the run", "The store is broken.")
    return replace(state, notes={**state.notes, note.id: note}, notes_made=state.notes_made + 1)


def lifted(state: RunState, event: NoteLifted) -> RunState:
    """The state without the note. If the candidate under review was refused only because of this pin, the state is at
    its compile step."""
    if event.note_id not in state.notes:
        known = list(state.notes)
        hint = did_you_mean(event.note_id, known) or f"Comments and pins: {', '.join(known) or 'none'}."
        raise InputError(f"there is no comment or pin {event.note_id!r}", hint)
    left = {name: note for name, note in state.notes.items() if name != event.note_id}
    state, current = replace(state, notes=left), state.current
    refused = current is not None and breaks_a_pin(state, current.id) and state.failed_step is None
    if current is None or state.step is not Step.REVIEW or not refused or broken_by(state, current.proposal):
        return state
    trials = {name: trial for name, trial in state.trials.items() if name != current.id}
    return replace(state, step=Step.COMPILE, trials=trials, problem_note="", problem_hint=None)


def ideas_given(state: RunState, event: IdeasGiven) -> RunState:
    """The state with the ideas that it does not have yet."""
    known = {given.idea.claim.casefold() for given in state.ideas.values()}
    new = [
        idea
        for idea in {each.claim.casefold(): each for each in event.ideas}.values()
        if idea.claim.casefold() not in known
    ]
    ideas = {f"i{len(state.ideas) + number}": GivenIdea(idea, event.by) for number, idea in enumerate(new, 1)}
    return replace(state, ideas={**state.ideas, **ideas}) if ideas else state


def breaks_a_pin(state: RunState, candidate_id: str | None) -> bool:
    """Whether a candidate was refused because of a pin."""
    trial = state.trials.get(candidate_id or "")
    return trial is not None and trial.verdict is Verdict.PIN_BROKEN


def broken_by(state: RunState, proposal: Proposal) -> list[Diagnostic]:
    """How ``proposal`` breaks the run's pins; empty if it keeps them all."""
    return broken_pins(tuple(state.notes.values()), state.candidates, proposal)

"""What the provider of a run can still be asked for, derived from the run's state alone."""

from __future__ import annotations

from cutegen_lab.core.run import RunState, Step

_TEMPLATES = "templates"  # a deterministic provider: it changes parameters of its own kernels


def by_templates(state: RunState) -> bool:
    """Whether the run's provider is ``templates``, or ``templates:`` followed by a first config."""
    return state.settings.provider.partition(":")[0] == _TEMPLATES


def can_grow(state: RunState, parent_id: str) -> bool:
    """Whether the provider can make a candidate from ``parent_id``: templates can only refine texts of their own."""
    return not by_templates(state) or state.candidates[parent_id].provider == _TEMPLATES


def pinned(state: RunState) -> bool:
    """Whether the analyst pinned something, and did not lift it."""
    return any(note.pin for note in state.notes.values())


def repeats_itself(state: RunState) -> bool:
    """Whether the run's last failure is one that the provider would repeat, as nothing it reads can have changed."""
    return state.failed_step is Step.GENERATE and by_templates(state) and not state.notes_made


def can_retry(state: RunState) -> bool:
    """Whether asking again can give another answer."""
    if state.failed_step is not None:
        return not repeats_itself(state)
    if state.ask_parent_id is not None:
        return can_grow(state, state.ask_parent_id)
    # Templates are deterministic: asked again, they write the same first kernel.
    return not by_templates(state) or not state.candidates

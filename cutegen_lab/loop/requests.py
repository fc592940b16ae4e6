"""The request for the provider that follows from a run's state."""

from __future__ import annotations

from cutegen_lab.core.idea_results import expectations, open_ideas, trust
from cutegen_lab.core.protocols import Attempt, GenerateRequest
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.run import RunState
from cutegen_lab.core.verbs import in_words


def attempt(state: RunState, candidate_id: str) -> Attempt:
    """An earlier candidate with its trial and answer. Raises KeyError for an unknown id."""
    answer = state.answers.get(candidate_id)
    return Attempt(state.candidates[candidate_id], state.trials.get(candidate_id), in_words(answer))


def generate_request(state: RunState) -> GenerateRequest:
    """The request of ``state``, which is at its generate step. Raises InputError for an arch or a GPU without
    speed-of-light figures."""
    settings = state.settings
    return GenerateRequest(
        kind=state.ask,
        problem=state.problem,
        gpu=target_gpu(settings.arch, settings.gpu),
        arch=settings.arch,
        parent=attempt(state, state.ask_parent_id) if state.ask_parent_id else None,
        feedback=state.feedback,
        history=tuple(attempt(state, i) for i in state.candidates),
        language=settings.language,
        wanted=state.wanted,
        notes=tuple(state.notes.values()),
        guidance=settings.guidance,
        ideas=open_ideas(state),
        trust=trust(expectations(state)),
    )

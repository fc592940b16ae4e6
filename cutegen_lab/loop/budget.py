"""When a run ends by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cutegen_lab.core.run import Resumed, RunState, StepStarted, StoredEvent


def tokens(state: RunState) -> int:
    """Prompt and completion tokens of every candidate so far."""
    return sum(c.proposal.usage.total for c in state.candidates.values())


def spent(state: RunState) -> str:
    """Why no further candidate may be asked for, or "" while one may. Seconds are the driver's to count."""
    budget = state.settings.budget
    if len(state.candidates) >= budget.max_steps:
        return f"budget: {len(state.candidates)} of {budget.max_steps} candidates used"
    used = tokens(state)
    if budget.max_tokens is not None and used >= budget.max_tokens:
        return f"budget: {used} of {budget.max_tokens} tokens used"
    return ""


def fixes_left(state: RunState) -> bool:
    """Whether a failed candidate goes back to the provider without asking the analyst."""
    return state.failed_in_a_row <= state.settings.budget.max_fixes and not spent(state)


def working_seconds(events: Sequence[StoredEvent]) -> float:
    """Seconds a run has worked: from each step's start to what came of it. Waiting for an answer is not work, nor is
    the time between a process that died in a step and the one that resumed."""
    return sum(
        after.at - before.at
        for before, after in pairwise(events)
        if isinstance(before.event, StepStarted) and not isinstance(after.event, Resumed)
    )

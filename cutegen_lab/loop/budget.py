"""Conditions under which a run ends by itself."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise

from cutegen_lab.core.cost import dollars, tokens
from cutegen_lab.core.gains import floor_us
from cutegen_lab.core.idea_results import base_trial
from cutegen_lab.core.predicted import AT_THE_FLOOR
from cutegen_lab.core.run import Resumed, RunState, Step, StepStarted, StoredEvent
from cutegen_lab.core.stopwatch import COPY

_AS_FAST = 0.01  # fraction of a copy's time within which two times count as equal


def spent(state: RunState) -> str:
    """Why no further candidate may be requested, or "". The driver checks the limit of seconds."""
    budget = state.settings.budget
    if (beyond := len(state.candidates) - budget.max_steps) >= 0:
        edited = f", and {beyond} more edited by the analyst" if beyond else ""
        return f"budget: {budget.max_steps} of {budget.max_steps} candidates used{edited}"
    used, price = tokens(state), state.settings.price
    if budget.max_tokens is not None and used.total >= budget.max_tokens:
        return f"budget: {used.total} of {budget.max_tokens} tokens used"
    if budget.max_usd is not None and price is not None and price.usd(used) >= budget.max_usd:
        return f"budget: {dollars(price.usd(used))} of {dollars(budget.max_usd)} used"
    return _gained_enough(state)


def drafts_left(state: RunState) -> bool:
    """Whether one more first kernel is to be asked for: not once a kernel that passed was refined."""
    candidates = state.candidates.values()
    refined = any(base_trial(state, each) is not None for each in candidates)
    return not refined and sum(each.parent_id is None for each in candidates) < state.settings.drafts


def _gained_enough(state: RunState) -> str:
    """Why the accepted kernel is good enough for the budget, or ""."""
    budget, best = state.settings.budget, state.incumbent_id
    trial = state.trials.get(best or "")
    if best is None or trial is None:
        return ""
    last_draft = max(at for at, each in enumerate(state.candidates.values(), 1) if each.parent_id is None)
    since = len(state.candidates) - max(state.gained_at, last_draft if state.settings.drafts > 1 else 0)
    if budget.patience is not None and since >= budget.patience:
        gain = f"saved {budget.gain:.0%} of the time" if budget.gain else f"replaced {best}"
        return f"budget: none of the last {since} candidates {gain}"
    if budget.within is not None and trial.timing is not None:
        floor, time_us = floor_us(trial, state), trial.timing.time_us
        if time_us <= (1 + budget.within) * floor:
            near = f"within {100 * budget.within:g}% of the floor of {floor:.3g} µs"
            return f"budget: {best} takes {time_us:.3g} µs, {near}"
    return ""


def nothing_to_gain(state: RunState) -> str:
    """Why an unattended run need not refine the accepted kernel, or "": the kernel is at the floor and, if its time was
    measured, a copy of the compulsory bytes is not faster."""
    trial = state.trials.get(state.incumbent_id or "")
    if trial is None or trial.timing is None or trial.profile is None:
        return ""
    copy_us = trial.timing.baselines.get(COPY, math.inf if trial.timing.kind == "predicted" else 0.0)
    if AT_THE_FLOOR not in trial.profile.limiter or trial.timing.time_us > (1 + _AS_FAST) * copy_us:
        return ""
    return f"{trial.candidate_id} is {trial.profile.limiter}: a refinement would gain nothing"


def fixes_left(state: RunState) -> bool:
    """Whether a failed candidate goes back to the provider without asking the analyst."""
    return state.failed_in_a_row <= state.settings.budget.max_fixes and not spent(state)


def working_seconds(events: Sequence[StoredEvent], steps: Collection[Step] = tuple(Step)) -> float:
    """Seconds that a run has worked on ``steps``: the sum over steps, from the start of each to its result. Waiting for
    an answer does not count, nor does the time between a crash and the resume."""
    return sum(
        after.at - before.at
        for before, after in pairwise(events)
        if isinstance(before.event, StepStarted) and before.event.step in steps and not isinstance(after.event, Resumed)
    )

"""Answers at review without the analyst: by the auto policy, and by the scope of an approval."""

from __future__ import annotations

from cutegen_lab.core.gains import not_faster, scope_end
from cutegen_lab.core.growth import repeats_itself
from cutegen_lab.core.run import Answer, RunState
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop.budget import drafts_left, spent

STUMBLES = 2
"""Failed steps in a row (not failures of candidates) after which an unattended run stops."""


def auto_answer(state: RunState) -> Answer:
    """The answer of the auto policy for ``state``, which is at review."""
    current = state.current_id
    if state.failed_step is not None:
        if state.stumbles < STUMBLES and not repeats_itself(state):
            return Answer("retry", current, by="auto")
        return Answer("stop", current, text=state.problem_note, by="auto")
    trial = state.trials.get(current) if current else None
    if trial is None:
        return Answer("stop", current, text="nothing to review", by="auto")
    if not trial.verdict.passed:
        reason = f"{trial.verdict.value}: {trial.reason}"
        if state.incumbent_id is None and drafts_left(state) and not spent(state):
            return Answer("reject", current, text=reason, by="auto")
        if state.incumbent_id is None or spent(state):
            left = "" if trial.verdict is Verdict.INCONCLUSIVE else "no fix left; "
            return Answer("stop", current, text=f"{left}the last candidate ended {reason}", by="auto")
        return Answer("reject", current, text=reason, by="auto")
    if state.incumbent_id is None:
        return Answer("approve", current, text="the first candidate to pass", by="auto")
    reason = not_faster(trial.timing, state)
    return Answer("reject" if reason else "approve", current, text=reason or "passed and faster", by="auto")


def scope_answer(state: RunState) -> Answer | None:
    """The answer that the scope of the last approval gives at review; None if the analyst is asked."""
    if state.scope is None or scope_end(state):
        return None
    return Answer("approve", state.current_id, text="passed and faster", by="scope", scope=state.scope)

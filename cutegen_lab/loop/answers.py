"""Effect of each answer (the analyst's or the auto policy's) on a run. Pure; illegal answers raise InputError."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cutegen_lab.core.approval import approvable_unproven, proven
from cutegen_lab.core.candidate import Candidate
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.growth import can_grow
from cutegen_lab.core.idea_results import change_between
from cutegen_lab.core.ideas import TIME
from cutegen_lab.core.run import Answer, RunState, Step
from cutegen_lab.core.syntax import parse
from cutegen_lab.loop.budget import drafts_left, spent
from cutegen_lab.loop.edits import edited
from cutegen_lab.loop.notes import breaks_a_pin, broken_by

REOPENING = ("branch", "edit")  # answers that a finished run accepts: they add another candidate


def answered(state: RunState, answer: Answer) -> RunState:
    """The state after ``answer``. Raises :class:`InputError` for an answer that this state does not accept."""
    if answer.kind == "stop":
        return stop(state, answer.text or f"stopped at {state.step.value}")
    if answer.kind in REOPENING and state.step is Step.DONE:
        state = replace(state, step=Step.REVIEW, outcome="", stopped_at=None)
    if state.step is not Step.REVIEW:
        what = f"{state.current_id} " if state.current_id else ""
        raise InputError(
            f"cannot {answer.kind}: the run is at {state.step.value} {what}".rstrip(),
            "The run takes answers only at review, but stop at any step.",
        )
    if answer.candidate_id not in (None, state.current_id) and answer.kind not in ("approve", "branch"):
        raise InputError(
            f"cannot {answer.kind} {answer.candidate_id}: {state.current_id} is under review",
            f"Answer {state.current_id}, branch from {answer.candidate_id}, or approve it if it passed.",
        )
    if answer.by == "scope":
        return _HANDLERS[answer.kind](replace(state, scope_used=state.scope_used + 1), answer)
    return _HANDLERS[answer.kind](replace(state, scope=answer.scope, scope_used=0), answer)


def refuse_new(state: RunState, answer: Answer) -> None:
    """Raises InputError for an answer that stored runs may have, but that is not taken any more: an edit that is not
    Python, an approval without proof of what did not compile, an approval of what has no build."""
    if answer.kind == "edit" and answer.text.strip():
        try:
            parse(answer.text)
        except SyntaxError as error:
            why = f"the edited text does not parse: {error.msg} (line {error.lineno})"
            raise InputError(why, "Correct that line, then run it again.") from None
    current = state.current_id or ""
    trial = state.trials.get(current)
    failed = trial is not None and not trial.verdict.passed and not breaks_a_pin(state, current)
    if answer.kind == "approve_unproven" and failed and not approvable_unproven(state):
        raise InputError(f"{current} did not compile: there is no kernel to accept", "Edit, retry or reject it.")
    trial = state.trials.get(answer.candidate_id or current)
    if answer.kind == "approve" and trial is not None and trial.verdict.passed and not proven(trial):
        raise InputError(f"cannot approve {trial.candidate_id}: it has no evidence of its build", "Retry it.")


def stop(state: RunState, reason: str) -> RunState:
    """Ends the run at its current step, from which it can be resumed. Its outcome is "stopped" if a step was
    interrupted and nothing accepted."""
    ended = replace(finish(state, reason), stopped_at=state.step)
    broken_off = ended.outcome == "nothing_accepted" and state.step not in (Step.REVIEW, Step.DONE)
    return replace(ended, outcome="stopped") if broken_off else ended


def finish(state: RunState, note: str) -> RunState:
    """Ends the run. Its outcome: "accepted" if any candidate was, otherwise "failed" after a failed step (not the
    candidate's failure), otherwise "nothing_accepted"."""
    failed = state.failed_step is not None
    outcome = "accepted" if state.accepted else "failed" if failed else "nothing_accepted"
    hint = state.problem_hint if note == state.problem_note else None
    ended = replace(state, step=Step.DONE, problem_note=note, problem_hint=hint, scope=None)
    return replace(ended, outcome=outcome)  # type: ignore[arg-type]


def ask(
    state: RunState, kind: str, parent_id: str | None, feedback: str = "", unlimited: bool = False, wanted: bool = False
) -> RunState:  # fmt: skip
    """The state that asks the provider for a candidate, or the end of the run if the budget is spent. ``unlimited``:
    ask even beyond the budget. ``wanted``: the analyst asked for the candidate, even if it is not expected to be
    faster."""
    reason = "" if unlimited else spent(state)
    if reason:
        return finish(state, reason)
    return replace(
        state,
        step=Step.GENERATE,
        ask=kind,  # type: ignore[arg-type]
        ask_parent_id=parent_id,
        feedback=feedback,
        wanted=wanted,
        failed_step=None,
        problem_note="",
        problem_hint=None,
    )


def with_candidate(state: RunState, candidate: Candidate) -> RunState:
    """The state with a new candidate in the tree, at its compile step."""
    return replace(
        state,
        step=Step.COMPILE,
        candidates={**state.candidates, candidate.id: candidate},
        current_id=candidate.id,
        failed_step=None,
        problem_note="",
        problem_hint=None,
        stumbles=0,
    )


def next_id(state: RunState) -> str:
    return f"c{len(state.candidates) + 1}"


def _approve(state: RunState, answer: Answer) -> RunState:
    current = _under_review(state, "approve")
    if answer.candidate_id not in (None, current.id):  # the analyst prefers it to the candidate under review
        current = _known(state, "approve", answer.candidate_id)
        if current.id == state.incumbent_id:
            raise InputError(f"{current.id} is the current kernel already", f"Answer {state.current_id} instead.")
        state = replace(state, current_id=current.id)
    trial = state.trials.get(current.id)
    if trial is None or not trial.verdict.passed or trial.check is None:
        seen = f"it ended {trial.verdict.value}" if trial else "it has no check evidence"
        raise InputError(
            f"cannot approve {current.id}: {seen}",
            "Retry or edit it, reject it, or accept it unproven with approve_unproven."
            if approvable_unproven(state)
            else "Retry or edit it, or reject it.",
        )
    return _accept(state, answer, current)


def _approve_unproven(state: RunState, answer: Answer) -> RunState:
    current = _under_review(state, "approve_unproven")
    trial = state.trials.get(current.id)
    if trial is not None and trial.verdict.passed:
        raise InputError(f"{current.id} is proven: it passed", "Use approve.")
    if breaks_a_pin(state, current.id):
        raise InputError(
            f"{current.id} breaks a pin: {trial.reason if trial else ''}", "Lift the pin, or reject the candidate."
        )
    return _accept(state, answer, current)


def _accept(state: RunState, answer: Answer, current: Candidate) -> RunState:
    accepted = (*(i for i in state.accepted if i != current.id), current.id)
    state = _with_answer(replace(state, accepted=accepted, failed_in_a_row=0, failed_step=None), answer)
    tie = answer.by != "analyst" and _is_tie(state, current.id)
    since = state.gained_at if tie else len(state.candidates)
    state = replace(state, incumbent_id=current.id, base_id=current.id, gained_at=since)
    return _another_draft(state) or ask(state, "refine", current.id)


def _reject(state: RunState, answer: Answer) -> RunState:
    current = _under_review(state, "reject")
    state = _with_answer(replace(state, failed_in_a_row=0), answer)
    if state.base_id is None and current.parent_id is not None and not can_grow(state, current.id):
        # Nothing is accepted and the provider cannot refine the analyst's text: its parent is reviewed again.
        return replace(state, current_id=current.parent_id, failed_step=None, problem_note="", problem_hint=None)
    if (drafted := _another_draft(state)) is not None and answer.by != "analyst":
        return drafted
    parent = state.base_id or current.id
    by_analyst = answer.by == "analyst"  # the reasons of the auto policy are in the history
    return ask(state, _kind(state, parent), parent, answer.text if by_analyst else "", wanted=by_analyst)


def _is_tie(state: RunState, candidate_id: str) -> bool:
    """Whether a candidate saves too little of the accepted kernel's time to count as a gain."""
    least = state.settings.budget.gain
    before, after = (state.trials.get(each or "") for each in (state.incumbent_id, candidate_id))
    came = change_between(TIME, before, after) if before is not None and after is not None else None
    return least > 0 and came is not None and came.fraction > -least


def _another_draft(state: RunState) -> RunState | None:
    """The state that asks for one more first kernel; None if there are as many as wanted, or one was refined."""
    return ask(state, "generate", None) if drafts_left(state) else None


def _edit(state: RunState, answer: Answer) -> RunState:
    current = _under_review(state, "edit")
    if not answer.text.strip():
        raise InputError("the edited text is empty", "Give the whole candidate module.")
    candidate = edited(current, answer.text, next_id(state))
    if found := broken_by(state, candidate.proposal):
        raise InputError(f"the edited text breaks {found[0].message}", "Keep the pinned text, or lift the pin.")
    # The text is stored in the new candidate, not in the answer.
    state = _with_answer(replace(state, failed_in_a_row=0), replace(answer, text=""))
    return with_candidate(state, candidate)


def _retry(state: RunState, answer: Answer) -> RunState:
    if state.failed_step not in (None, Step.GENERATE):
        return replace(state, step=state.failed_step, failed_step=None, problem_note="", problem_hint=None)
    if state.failed_step is None:  # otherwise the answer is to the failed request, not to a candidate
        state = _with_answer(state, answer)
    return ask(state, state.ask, state.ask_parent_id, state.feedback, unlimited=True, wanted=answer.by == "analyst")


def _branch(state: RunState, answer: Answer) -> RunState:
    target = _known(state, "branch from", answer.target_id).id
    state = replace(_with_answer(state, answer), base_id=target, failed_in_a_row=0)
    return ask(state, _kind(state, target), target, answer.text, unlimited=True, wanted=answer.by == "analyst")


def _under_review(state: RunState, verb: str) -> Candidate:
    if state.current is None:
        raise InputError(f"cannot {verb}: there is no candidate yet", "Retry, or stop the run.")
    return state.current


def _known(state: RunState, verb: str, candidate_id: str | None) -> Candidate:
    candidate = state.candidates.get(candidate_id or "")
    if candidate is None:
        known = ", ".join(state.candidates) or "none yet"
        raise InputError(f"cannot {verb} {candidate_id!r}: no such candidate", f"Candidates: {known}.")
    return candidate


def _with_answer(state: RunState, answer: Answer) -> RunState:
    if state.current_id is None:
        return state
    before = state.answers.get(state.current_id)
    kept = {"approve", "approve_unproven"} | ({"reject"} if before is not None and before.kind == "reject" else set())
    if before is not None and before.kind in kept and answer.kind not in kept:
        return state  # a later branch, edit or retry does not revoke an approval or a rejection
    return replace(state, answers={**state.answers, state.current_id: replace(answer, candidate_id=state.current_id)})


def _kind(state: RunState, parent_id: str) -> str:
    """Kind of request: "fix" for a parent that is known to fail, otherwise "refine"."""
    trial = state.trials.get(parent_id)
    return "fix" if trial is not None and not trial.verdict.passed else "refine"


_HANDLERS: dict[str, Callable[[RunState, Answer], RunState]] = {
    "approve": _approve,
    "approve_unproven": _approve_unproven,
    "reject": _reject,
    "edit": _edit,
    "retry": _retry,
    "branch": _branch,
}

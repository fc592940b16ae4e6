"""The life of a run, without clock, disk or thread: ``advance(state, event) -> state``, ``next_step(state) -> effect``.

Steps go generate → compile → check → time → profile → review. A candidate that fails goes back to the provider while
fixes remain, then waits at review; one that could not be judged waits there immediately. The next step follows from the
state alone (:func:`next_step`), so a run resumes from its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.growth import pinned
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.run import (
    Answered,
    Checked,
    Compiled,
    CompileFailed,
    Event,
    Generated,
    GenerateFailed,
    IdeasGiven,
    Imported,
    Noted,
    NoteLifted,
    Profiled,
    Resumed,
    RunStarted,
    RunState,
    Step,
    StepFailed,
    StepStarted,
    Stopped,
    Timed,
)
from cutegen_lab.core.trial import Trial
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop import trials
from cutegen_lab.loop.answers import REOPENING, answered, ask, finish, stop, with_candidate
from cutegen_lab.loop.budget import fixes_left
from cutegen_lab.loop.edits import ANALYST
from cutegen_lab.loop.effects import AskReview, Check, Compile, Effect, Finish, Generate, Profile, Time
from cutegen_lab.loop.notes import ideas_given, lifted, noted
from cutegen_lab.loop.requests import generate_request
from cutegen_lab.loop.review import auto_answer, scope_answer


def advance(state: RunState | None, event: Event) -> RunState:
    """The state after ``event``; ``state`` itself if the event changes nothing.

    Raises :class:`InputError` for an answer or event that is not legal in ``state``. A finished run ignores everything
    except a branch, an edit, a resume, comments, pins and ideas.
    """
    if isinstance(event, RunStarted):
        if state is not None:
            raise InputError(f"run {state.run_id} has already started", "Start another run.")
        return RunState(event.run_id, event.problem, event.settings, event.sol, Step.GENERATE)
    if state is None:
        raise InputError(f"a run cannot begin with {event.type}", "Its first event must be run_started.")
    if state.imported:
        raise InputError(f"run {state.run_id} was read from {state.imported}", Hint(Advice.JUDGE_HERE))
    if isinstance(event, StepStarted) or (state.finished and not _reopens(event)):
        return state
    return _HANDLERS[type(event)](state, event)


def fold(events: Iterable[Event]) -> RunState:
    """The state that ``events`` lead to. Raises :class:`InputError` for an empty or impossible sequence."""
    state: RunState | None = None
    for event in events:
        state = advance(state, event)
    if state is None:
        raise InputError("a run without events", "It was never started.")
    return state


def next_step(state: RunState) -> Effect:
    """The next step, from the state alone."""
    current = state.current_id or ""
    built = state.compiled.get(current)
    artifact = built.artifact_sha256 if built else ""
    match state.step:
        case Step.GENERATE:
            return Generate(generate_request(state))
        case Step.COMPILE:
            return Compile(current)
        case Step.CHECK:
            return Check(current, artifact)
        case Step.TIME:
            return Time(current, artifact)
        case Step.PROFILE:
            return Profile(current, artifact)
        case Step.REVIEW:
            return AskReview(state.current_id, auto_answer(state) if state.settings.auto else scope_answer(state))
        case Step.DONE:
            return Finish(state.outcome, state.problem_note)


def _reopens(event: Event) -> bool:
    if isinstance(event, Answered):
        return event.answer.kind in REOPENING
    return isinstance(event, (Resumed, Imported, Noted, NoteLifted, IdeasGiven))


def _generated(state: RunState, event: Generated) -> RunState:
    _expect(state, Step.GENERATE, event)
    candidate = event.candidate
    if candidate.id in state.candidates or candidate.parent_id not in (None, *state.candidates):
        raise InputError(f"candidate {candidate.id} (parent {candidate.parent_id}) does not fit the run's tree")
    return with_candidate(state, candidate)


def _generate_failed(state: RunState, event: GenerateFailed) -> RunState:
    _expect(state, Step.GENERATE, event)
    state = replace(state, wasted=state.wasted + event.usage)
    if event.exhausted and _editing(state):
        return replace(state, step=Step.REVIEW, problem_note=event.reason)
    if event.exhausted and pinned(state) and not state.settings.auto:
        return _step_lost(state, Step.GENERATE, replace(event, hint=Hint(Advice.LIFT_PIN)))
    if event.exhausted:
        return finish(state, event.reason)
    return _step_lost(state, Step.GENERATE, event)


def _editing(state: RunState) -> bool:
    """Whether the current candidate is an edit by the analyst that failed: the run then waits for the next edit."""
    current, trial = state.current, state.trials.get(state.current_id or "")
    failed = trial is not None and not trial.verdict.passed
    return failed and current is not None and current.provider == ANALYST and not state.settings.auto


def _compiled(state: RunState, event: Compiled) -> RunState:
    _expect(state, Step.COMPILE, event, event.candidate_id)
    compiled = {**state.compiled, event.candidate_id: event}
    return replace(state, step=Step.CHECK, compiled=compiled, stumbles=0)


def _compile_failed(state: RunState, event: CompileFailed) -> RunState:
    _expect(state, Step.COMPILE, event, event.candidate_id)
    trial = trials.compile_failed(state, event)
    if event.verdict is Verdict.PIN_BROKEN and not state.settings.auto:  # only the analyst can lift the pin
        note = f"{event.candidate_id} is not judged: lift the pin that it breaks, or reject it"
        return replace(_with_trial(state, trial), step=Step.REVIEW, problem_note=note, stumbles=0)
    return _failed(state, trial)


def _checked(state: RunState, event: Checked) -> RunState:
    _expect(state, Step.CHECK, event, event.candidate_id)
    trial = trials.checked(state, event)
    if trial.verdict is Verdict.INCONCLUSIVE:  # no error is known: there is nothing to fix
        note = f"{trial.candidate_id} is inconclusive: no error was found, but too little ran to prove it right"
        return replace(_with_trial(state, trial), step=Step.REVIEW, problem_note=note)
    if not trial.verdict.passed:
        return _failed(state, trial)
    return replace(_with_trial(state, trial), step=Step.TIME)


def _timed(state: RunState, event: Timed) -> RunState:
    _expect(state, Step.TIME, event, event.candidate_id)
    trial = trials.timed(state.trials[event.candidate_id], event)
    if not trial.verdict.passed:
        return _failed(state, trial)
    return replace(_with_trial(state, trial), failed_in_a_row=0, step=Step.PROFILE)


def _profiled(state: RunState, event: Profiled) -> RunState:
    _expect(state, Step.PROFILE, event, event.candidate_id)
    state = _with_trial(state, trials.profiled(state.trials[event.candidate_id], event))
    return replace(state, step=Step.REVIEW)


def _answered(state: RunState, event: Answered) -> RunState:
    return answered(state, event.answer)


def _step_failed(state: RunState, event: StepFailed) -> RunState:
    if state.step is Step.REVIEW:
        raise InputError("a run at review performs no step that could fail", "The store or the driver is broken.")
    _expect(state, event.step, event)
    return _step_lost(state, event.step, event)


def _resumed(state: RunState, event: Resumed) -> RunState:
    """Starts an interrupted step again, and continues a stopped run at its step; a run that ended stays ended."""
    if (at := state.stopped_at) is None:
        return state
    if not (at is Step.REVIEW and state.failed_step):
        state = replace(state, problem_note="", problem_hint=None)
    return replace(state, step=at, stopped_at=None, outcome="", stumbles=0)


def _stopped(state: RunState, event: Stopped) -> RunState:
    return stop(state, event.reason)


def _imported(state: RunState, event: Imported) -> RunState:
    """Ends the run: its kernels are run only after this machine has compiled and judged them."""
    note = f"read from {event.source}: compiled and judged elsewhere"
    ended = state if state.finished else finish(state, "")
    return replace(
        ended, imported=event.source, stopped_at=None, problem_note=note, problem_hint=Hint(Advice.JUDGE_HERE)
    )


def _failed(state: RunState, trial: Trial) -> RunState:
    """Goes back to the provider with the failure, or to review once the fixes are used up."""
    state = replace(_with_trial(state, trial), failed_in_a_row=state.failed_in_a_row + 1, stumbles=0)
    if fixes_left(state):
        return ask(state, "fix", trial.candidate_id, state.feedback)
    return replace(state, step=Step.REVIEW, problem_note=f"{state.failed_in_a_row} failed in a row: no fix left")


def _step_lost(state: RunState, step: Step, event: GenerateFailed | StepFailed) -> RunState:
    """For a failure of a step that is not the candidate's: the run waits at review, where the step can be retried."""
    stumbles = state.stumbles + 1
    return replace(
        state, step=Step.REVIEW, failed_step=step, problem_note=event.reason, problem_hint=event.hint, stumbles=stumbles
    )


def _with_trial(state: RunState, trial: Trial) -> RunState:
    return replace(state, trials={**state.trials, trial.candidate_id: trial})


def _expect(state: RunState, step: Step, event: Event, candidate_id: str | None = None) -> None:
    if state.step is not step or candidate_id not in (None, state.current_id):
        where = f"{state.step.value} of {state.current_id}" if state.current_id else state.step.value
        raise InputError(f"event {event.type} does not belong at {where}", "The store or the driver is broken.")


_HANDLERS: dict[type[Event], Callable[..., RunState]] = {
    Generated: _generated,
    GenerateFailed: _generate_failed,
    Compiled: _compiled,
    CompileFailed: _compile_failed,
    Checked: _checked,
    Timed: _timed,
    Profiled: _profiled,
    Answered: _answered,
    StepFailed: _step_failed,
    Resumed: _resumed,
    Stopped: _stopped,
    Imported: _imported,
    Noted: noted,
    NoteLifted: lifted,
    IdeasGiven: ideas_given,
}

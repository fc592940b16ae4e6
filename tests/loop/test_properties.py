"""Any sequence of legal events keeps the invariants, and folding it equals advancing through it."""

from __future__ import annotations

import copy

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.run import (
    Answer,
    Answered,
    Budget,
    Event,
    GenerateFailed,
    Resumed,
    RunSettings,
    RunState,
    Step,
    StepFailed,
    StepStarted,
    Stopped,
)
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop import AskReview, Finish, advance, fold, next_step
from tests.loop.events import checked, compile_failed, compiled, generated, profiled, timed
from tests.loop.scripted import started

VERDICTS = st.sampled_from([Verdict.PASSED, Verdict.PASSED, Verdict.WRONG_RESULT, Verdict.HANG])
KINDS = st.sampled_from(["approve", "approve_unproven", "reject", "edit", "retry", "branch", "stop"])
BUDGETS = st.builds(Budget, max_steps=st.integers(1, 6), max_fixes=st.integers(0, 3),
                    max_tokens=st.none() | st.integers(1, 60))  # fmt: skip
SETTINGS = st.builds(
    RunSettings, provider=st.just("manual"), auto=st.booleans(), budget=BUDGETS, drafts=st.integers(1, 3)
)


def next_event(draw: st.DrawFn, state: RunState, attended: bool = True) -> Event:
    """Something a driver or (``attended``) an analyst could do now: not always legal."""
    if not attended and state.step is not Step.REVIEW and draw(st.integers(0, 5)) == 0:
        return StepFailed(state.step, "ours")
    if attended and draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([Stopped("x"), Resumed(), StepStarted(state.step), StepFailed(state.step, "ours")]))
    current = state.current_id or "c0"
    match state.step:
        case Step.GENERATE:
            failed = draw(st.sampled_from([None, None, None, False, True]))
            if failed is not None:
                return GenerateFailed("no", exhausted=failed)
            return generated(f"c{len(state.candidates) + 1}", state.ask_parent_id)
        case Step.COMPILE:
            return draw(st.sampled_from([compiled(current), compiled(current), compile_failed(current)]))
        case Step.CHECK:
            return checked(current, draw(VERDICTS))
        case Step.TIME:
            kind = draw(st.sampled_from(["predicted", "measured"]))
            return timed(current, draw(st.floats(1, 100)), kind, fault=draw(st.integers(0, 4)) == 0)
        case Step.PROFILE:
            return profiled(current)
    effect = next_step(state)
    if isinstance(effect, AskReview) and effect.answer is not None:
        return Answered(effect.answer)
    target = draw(st.sampled_from([*state.candidates, "c99"]))
    return Answered(Answer(draw(KINDS), text=draw(st.sampled_from(["", "text"])), target_id=target))


def check_invariants(before: RunState | None, state: RunState) -> None:
    known = set(state.candidates)
    assert set(state.trials) <= known and set(state.compiled) <= known and set(state.answers) <= known
    assert set(state.accepted) <= known and len(set(state.accepted)) == len(state.accepted)
    assert state.current_id in {None, *known} and state.base_id in {None, *known}
    assert state.ask_parent_id in {None, *known}
    assert state.incumbent_id == (state.accepted[-1] if state.accepted else None)
    assert (state.step is Step.DONE) == (state.outcome != "")
    assert (state.outcome == "accepted") == (state.finished and bool(state.accepted))
    for candidate in state.candidates.values():
        assert candidate.parent_id is None or candidate.parent_id in known
    for accepted in state.accepted:
        answer = state.answers[accepted]
        assert answer.kind in ("approve", "approve_unproven")
        if answer.kind == "approve":
            assert state.trials[accepted].verdict.passed and state.trials[accepted].check
    if state.step in (Step.CHECK, Step.TIME, Step.PROFILE):
        assert state.current_id in state.compiled
    if state.failed_step is not None:
        assert state.step in (Step.REVIEW, Step.DONE)
    if before is not None:  # nothing recorded is ever taken back
        assert list(before.candidates.items()) == list(state.candidates.items())[: len(before.candidates)]
        assert set(before.accepted) <= set(state.accepted)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    events: list[Event] = [started(settings=draw(SETTINGS))]
    state = advance(None, events[0])
    for _ in range(draw(st.integers(0, 40))):
        event = next_event(draw, state)
        snapshot = copy.deepcopy(state)
        try:
            after = advance(state, event)
        except InputError:
            assert state == snapshot
            continue
        assert state == snapshot, "advance changed its input"
        check_invariants(state, after)
        events.append(event)
        state = after
    return events


@settings(max_examples=150, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(histories())
def test_folding_equals_advancing(events: list[Event]) -> None:
    state = None
    for event in events:
        state = advance(state, event)
    assert fold(events) == state


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.data(), BUDGETS)
def test_an_unattended_run_always_ends(data: st.DataObject, budget: Budget) -> None:
    """With no analyst and no luck, auto mode reaches the end within its budget."""
    state = advance(None, started(settings=RunSettings(auto=True, budget=budget)))
    for _ in range(400):
        effect = next_step(state)
        if isinstance(effect, Finish):
            break
        assert not (isinstance(effect, AskReview) and effect.answer is None)
        state = advance(state, next_event(data.draw, state, attended=False))
    assert state.finished
    assert len(state.candidates) <= budget.max_steps

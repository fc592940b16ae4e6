"""An approval for more than one step: the run answers itself, says why, and asks as soon as something is amiss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_lab.core.gains import scope_end
from cutegen_lab.core.predicted import as_counters
from cutegen_lab.core.run import (
    Answer,
    Answered,
    Budget,
    Event,
    GenerateFailed,
    Profiled,
    Resumed,
    RunSettings,
    RunState,
    Step,
    StepFailed,
    Stopped,
    Timed,
)
from cutegen_lab.core.scopes import scope_of
from cutegen_lab.core.trial import Profile
from cutegen_lab.core.verbs import in_words
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop import AskReview, advance, fold, next_step
from tests.loop.events import checked, compile_failed, compiled, generated, passing
from tests.loop.scripted import started

ONE_FIX = RunSettings(budget=Budget(max_fixes=0))


def approved(scope: str, *then: Event, settings: RunSettings = ONE_FIX, time_us: float = 100.0) -> RunState:
    approval = Answered(Answer("approve", scope=scope_of(scope)))
    return fold([started(settings=settings), *passing("c1", None, time_us), approval, *then])


def given(state: RunState) -> Answer | None:
    effect = next_step(state)
    assert isinstance(effect, AskReview)
    return effect.answer


def answered(state: RunState) -> RunState:
    answer = given(state)
    assert answer is not None
    return advance(state, Answered(answer))


def after(state: RunState, *events: Event) -> RunState:
    for event in events:
        state = advance(state, event)
    return state


def test_an_approval_alone_is_for_one_step() -> None:
    assert given(approved("", *passing("c2", "c1", 90.0))) is None


def test_each_answer_says_which_scope_gave_it() -> None:
    state = approved("until slower", *passing("c2", "c1", 90.0))
    assert in_words(state.answers["c1"]) == "approved, and until slower"
    answer = given(state)
    assert answer is not None and (answer.kind, answer.by, answer.scope) == ("approve", "scope", scope_of("slower"))
    state = answered(state)
    assert state.accepted == ("c1", "c2") and state.step is Step.GENERATE
    assert in_words(state.answers["c2"]) == "approved by the scope “until slower”"


def test_as_many_steps_as_were_given() -> None:
    state = answered(approved("2 steps", *passing("c2", "c1", 90.0)))
    state = answered(after(state, *passing("c3", "c2", 80.0)))
    state = after(state, *passing("c4", "c3", 70.0))
    assert given(state) is None and scope_end(state) == "2 of 2 steps approved"
    state = advance(state, Answered(Answer("approve")))
    assert state.scope is None and given(after(state, *passing("c5", "c4", 60.0))) is None


def test_a_resume_goes_on_with_it_and_a_stop_ends_it() -> None:
    state = answered(approved("until slower", *passing("c2", "c1", 90.0)))
    assert given(after(state, Resumed(), *passing("c3", "c2", 80.0))) is not None
    for stop in (Stopped("enough"), Answered(Answer("stop"))):
        stopped = after(state, stop, Resumed(), *passing("c3", "c2", 80.0))
        assert stopped.scope is None and given(stopped) is None


BROKEN = replace(compile_failed("c2"), verdict=Verdict.PIN_BROKEN)


@pytest.mark.parametrize("scope", ["5 steps", "within 1%", "until slower"])
@pytest.mark.parametrize(
    ("events", "why"),
    [
        (passing("c2", "c1", 100.0), "c2 is not faster: 100 µs predicted"),
        (passing("c2", "c1", 120.0), "c2 is slower: 120 µs predicted"),
        (passing("c2", "c1", 50.0, "measured"), "a measured time on scripted cannot be compared"),
        ([generated("c2", "c1"), compile_failed("c2")], "c2 ended compile error"),
        ([generated("c2", "c1"), BROKEN], "c2 ended pin broken"),
        ([generated("c2", "c1"), compiled("c2"), checked("c2", Verdict.INCONCLUSIVE)], "c2 ended inconclusive"),
        ([generated("c2", "c1"), compiled("c2"), StepFailed(Step.CHECK, "the worker died")], "check failed"),
        ([GenerateFailed("no answer")], "generate failed"),
    ],
)
def test_what_is_not_faster_and_right_is_asked(scope: str, events: list[Event], why: str) -> None:
    state = approved(scope, *events)
    assert given(state) is None and why in scope_end(state)
    assert advance(state, Answered(Answer("reject", text="no"))).scope is None


def floored(events: list[Event]) -> list[Event]:
    """With a profile whose attainable time is 8 + 2 µs."""
    profile = Profile("emulator", "memory", as_counters({"copy": 8.0, "launch": 2.0, "memory": 8.0}))
    return [replace(event, profile=profile) if isinstance(event, Profiled) else event for event in events]


def measured(events: list[Event], copy_us: float) -> list[Event]:
    return [
        replace(event, timing=replace(event.timing, baselines={"copy of the compulsory bytes": copy_us}))
        if isinstance(event, Timed) and event.timing
        else event
        for event in events
    ]


def test_until_within_a_distance_of_the_floor() -> None:
    far, near = (approved("within 10%", *floored(passing("c2", "c1", us))) for us in (11.1, 10.9))
    assert given(far) is not None and given(near) is None
    assert scope_end(near) == "c2 takes 10.9 µs, and the floor is 10 µs"


def test_the_floor_of_a_measured_time_is_the_copy_timed_beside_it() -> None:
    def begun(time_us: float) -> RunState:
        approval = Answered(Answer("approve", scope=scope_of("within 10%")))
        first = passing("c1", None, 100.0, "measured")
        return fold(
            [started(settings=ONE_FIX), *first, approval, *measured(passing("c2", "c1", time_us, "measured"), 50)]
        )

    assert given(begun(56.0)) is not None and given(begun(54.0)) is None


def test_the_speed_of_light_is_the_floor_where_nothing_else_is_known() -> None:
    sol_us = approved("").sol.time_us
    state = approved("within 10%", *passing("c2", "c1", 1.05 * sol_us))
    assert given(state) is None and "the floor is" in scope_end(state)
    assert given(approved("within 10%", *passing("c2", "c1", 1.2 * sol_us))) is not None


def test_only_an_approval_has_one_and_auto_needs_none() -> None:
    state = approved("until slower", *passing("c2", "c1", 90.0))
    assert advance(state, Answered(Answer("reject", text="no"))).scope is None
    auto = approved("until slower", *passing("c2", "c1", 90.0), settings=RunSettings(auto=True))
    answer = given(auto)
    assert answer is not None and answer.by == "auto"

"""Budget policies on recorded runs, against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.run import Answered, Event, GenerateFailed, StoredEvent
from cutegen_lab.core.verbs import Answer
from cutegen_lab.loop.history import History
from cutegen_lab.suite.courses import Attempt, Course, course_of
from cutegen_lab.suite.policies import allotted, expected_gain, in_turn, replays, replays_text, stopping
from tests.loop.events import compile_failed, generated, passing
from tests.loop.scripted import started


def course(name: str, *times_us: float | None, floor_us: float = 10.0, tokens: int = 100) -> Course:
    """A run whose candidates have these times; None was not accepted."""
    return Course(name, tuple(Attempt(tokens, time_us, None if time_us is None else floor_us) for time_us in times_us))


STEADY = course("steady", None, 40.0, 20.0, None, None, 10.4, None, None)  # 4% above the floor at the sixth
AT_ONCE = course("at once", 10.05, None, None, None, tokens=50)  # 0.5% above the floor
NEVER = course("never", None, None)


@pytest.mark.parametrize(
    ("recorded", "within", "patience", "count"),
    [
        (STEADY, 0.05, None, 6), (STEADY, 0.01, None, 8), (STEADY, 3.0, None, 2), (STEADY, None, 1, 4),
        (STEADY, None, 2, 5), (STEADY, None, 3, 8), (STEADY, 0.05, 2, 5), (STEADY, 0.05, 3, 6),
        (AT_ONCE, 0.01, None, 1), (AT_ONCE, None, 1, 2), (AT_ONCE, None, 3, 4), (AT_ONCE, 0.001, None, 4),
        (NEVER, 0.1, 1, 2), (course("slower", 20.0, 30.0, 15.0), None, 1, 2),
    ],
)  # fmt: skip
def test_where_a_run_would_have_stopped(
    recorded: Course, within: float | None, patience: int | None, count: int
) -> None:
    assert stopping(recorded, within, patience) == count


def test_saved_and_kept() -> None:
    found = {each.policy: each for each in replays([STEADY, AT_ONCE, NEVER])}
    recorded = found["recorded"]
    assert (recorded.candidates, recorded.tokens, recorded.speed_kept) == (14, 1200, 1.0)
    assert (recorded.candidates_saved, recorded.tokens_saved, recorded.unsolved) == (0.0, 0.0, ())
    near = found["within 5% of the floor"]  # 6 + 1 + 2 candidates, 600 + 50 + 200 tokens
    assert (near.candidates, near.tokens, near.speed_kept) == (9, 850, 1.0)
    assert near.candidates_saved == pytest.approx(5 / 14) and near.tokens_saved == pytest.approx(350 / 1200)
    idle = found["2 without a gain"]  # 5 + 3 + 2 candidates; steady keeps 20 µs of 10.4
    assert (idle.candidates, idle.tokens) == (10, 850)
    assert idle.speed_kept == pytest.approx(math.sqrt(10.4 / 20.0))
    both = found["within 5% of the floor or 2 without a gain"]
    assert (both.candidates, both.tokens) == (8, 750) and both.speed_kept == idle.speed_kept
    assert len(found) == 1 + 4 + 3 + 12 + 6


def test_a_problem_that_a_policy_leaves_without_a_kernel_is_named() -> None:
    late = course("late", None, None, None, 12.0)
    quarter = next(each for each in replays([AT_ONCE, late]) if each.policy == "25% of the candidates, in turn")
    assert (quarter.candidates, quarter.unsolved, quarter.speed_kept) == (2, ("late",), 1.0)
    assert "late" in replays_text([quarter])


def test_expected_gain_by_hand() -> None:
    assert expected_gain(STEADY, 0) == pytest.approx(1 / 2 * math.log(20))
    assert expected_gain(STEADY, 1) == pytest.approx(1 / 3 * math.log(20))
    assert expected_gain(STEADY, 3) == pytest.approx(3 / 5 * 0.5 * math.log(2))  # 2 gains in 3; 20 µs, floor 10
    assert expected_gain(STEADY, 5) == pytest.approx(3 / 7 * 0.5 * math.log(2))
    assert expected_gain(AT_ONCE, 1) == pytest.approx(2 / 3 * 0.5 * math.log(1.005))
    assert expected_gain(course("below", 9.0), 1) == 0.0


def test_candidates_go_where_most_is_expected() -> None:
    courses = [AT_ONCE, STEADY]
    # Each gets one (1.5 each); at once is at its floor then, so steady gets the others.
    assert allotted(courses, 6, expected_gain) == (1, 5)
    assert allotted(courses, 6, in_turn) == (3, 3)
    assert allotted(courses, 10, expected_gain) == (2, 8)  # steady has no more
    assert allotted(courses, 99, expected_gain) == (4, 8)
    by_gain, turns = (
        next(each for each in replays(courses) if each.policy == f"50% of the candidates, {how}")
        for how in ("by expected gain", "in turn")
    )
    assert by_gain.candidates == turns.candidates == 6
    assert by_gain.speed_kept == pytest.approx(math.sqrt(10.4 / 20.0)) == turns.speed_kept


def test_without_tokens_only_candidates_are_saved() -> None:
    found = replays([course("free", 20.0, None, tokens=0)])
    assert {each.tokens_saved for each in found} == {None}
    assert "-" in replays_text(found).splitlines()[1].split()


def test_the_course_of_a_run() -> None:
    events: list[Event] = [
        started(), GenerateFailed("nonsense", usage=TokenUsage(4, 3)), Answered(Answer("retry")),
        *(e for e in (generated("c1"), compile_failed("c1"))),
        *passing("c2", time_us=30.0), Answered(Answer("approve")),
        *passing("c3", time_us=40.0), Answered(Answer("reject", text="slower")),
        *passing("c4", time_us=12.0), Answered(Answer("approve")),
    ]  # fmt: skip
    found = course_of("r", History.of([StoredEvent(at, float(at), event) for at, event in enumerate(events, 1)]))
    assert [(a.tokens, a.time_us) for a in found.attempts] == [(22, None), (15, 30.0), (15, None), (15, 12.0)]
    assert (found.tokens, found.best_us(), found.best_us(3), found.best_us(1)) == (67, 12.0, 30.0, None)
    assert found.attempts[1].floor_us and not found.attempts[2].floor_us

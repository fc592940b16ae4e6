"""A measured time below the speed of light is labelled, and accepted by nobody but the analyst."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_lab.cli.facts import trial_facts
from cutegen_lab.cli.progress import in_a_line
from cutegen_lab.core.gains import scope_end
from cutegen_lab.core.quarantine import LEAST_OF_BOUND, under_bound
from cutegen_lab.core.run import Answer, Answered, Event, RunSettings, RunState
from cutegen_lab.core.scopes import scope_of
from cutegen_lab.core.standing import best_id
from cutegen_lab.core.trial import Timing
from cutegen_lab.loop import fold
from cutegen_lab.loop.review import auto_answer
from cutegen_lab.views.speed import speed_rows
from tests.loop.events import passing
from tests.loop.scripted import started

BOUND = replace(started().sol, time_us=3.5)
WORDS = "under the bound: 2.1 µs where no kernel can take less than 3.5 µs; the time or the bound is wrong"
APPROVE = Answered(Answer("approve"))


def state_of(*events: Event, auto: bool = True) -> RunState:
    return fold([replace(started(settings=RunSettings(auto=auto)), sol=BOUND), *events])


def timing(time_us: float, kind: str = "measured") -> Timing:
    return Timing(kind, time_us, "script", "scripted")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (timing(2.1), WORDS),
        (timing(2.1, "predicted"), ""),
        (timing(LEAST_OF_BOUND * 3.5 + 0.001), ""),  # noise
        (timing(LEAST_OF_BOUND * 3.5 - 0.001), "under the bound: 3.39 µs where"),
        (None, ""),
    ],
)
def test_only_a_measured_time_that_is_impossible_is_quarantined(found: Timing | None, words: str) -> None:
    assert under_bound(found, BOUND).startswith(words) and bool(under_bound(found, BOUND)) == bool(words)
    assert under_bound(found, None) == ""


def test_a_first_candidate_under_the_bound_is_not_accepted() -> None:
    answer = auto_answer(state_of(*passing("c1", None, 2.1, "measured")))
    assert (answer.kind, answer.text) == ("stop", WORDS)
    assert auto_answer(state_of(*passing("c1", None, 3.6, "measured"))).kind == "approve"
    assert auto_answer(state_of(*passing("c1", None, 2.1, "predicted"))).kind == "approve"


def test_a_later_candidate_under_the_bound_is_rejected_though_it_is_faster() -> None:
    first = [*passing("c1", None, 10.0, "measured"), APPROVE]
    answer = auto_answer(state_of(*first, *passing("c2", "c1", 2.1, "measured")))
    assert (answer.kind, answer.text) == ("reject", WORDS)
    assert auto_answer(state_of(*first, *passing("c2", "c1", 3.6, "measured"))).kind == "approve"


def test_the_scope_of_an_approval_ends() -> None:
    approval = Answered(Answer("approve", scope=scope_of("5 steps")))
    state = state_of(
        *passing("c1", None, 10.0, "measured"), approval, *passing("c2", "c1", 2.1, "measured"), auto=False
    )
    assert scope_end(state) == f"c2 is {WORDS}"


def test_it_is_the_best_only_if_the_analyst_accepted_it() -> None:
    both = [*passing("c1", None, 10.0, "measured"), APPROVE, *passing("c2", "c1", 2.1, "measured")]
    assert best_id(state_of(*both, auto=False)) == "c1"
    assert best_id(state_of(*both, APPROVE, auto=False)) == "c2"


def test_report_json_and_progress_say_so() -> None:
    events = passing("c1", None, 2.1, "measured")
    state = state_of(*events)
    trial = state.trials["c1"]
    (row,) = [row for row in speed_rows(trial.timing, BOUND) if row.key == "under_bound"]
    assert (row.label, row.value, row.tone) == ("Quarantined", WORDS, "bad")
    assert trial_facts(trial)["under_bound"] == WORDS
    assert in_a_line(events[3], state) == f"c1 2.1 µs measured, {WORDS}"
    assert not [row for row in speed_rows(timing(3.6), BOUND) if row.key == "under_bound"]

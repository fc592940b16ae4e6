"""Words for what came of a run."""

from __future__ import annotations

import pytest

from cutegen_lab.core.run import Answered, Event, Stopped
from cutegen_lab.core.verbs import Answer
from cutegen_lab.loop.machine import fold
from cutegen_lab.suite.rows import outcome_of
from cutegen_lab.suite.runner import has_ended
from tests.loop.events import generated, passing
from tests.loop.scripted import started

APPROVED = [*passing("c1"), Answered(Answer("approve"))]
TIME_IS_UP = Stopped("budget: 60 of 60 s used")


@pytest.mark.parametrize(
    ("events", "outcome", "ended"),
    [
        ([*APPROVED, TIME_IS_UP], "correct", True),
        ([*APPROVED, Stopped("interrupted")], "correct", True),
        ([TIME_IS_UP], "nothing accepted", True),
        ([generated("c1"), Stopped("interrupted")], "unfinished", False),
        (APPROVED, "unfinished", False),
    ],
)
def test_a_run_that_used_up_its_time_has_ended(events: list[Event], outcome: str, ended: bool) -> None:
    state = fold([started(), *events])
    assert (outcome_of(state), has_ended(state)) == (outcome, ended)

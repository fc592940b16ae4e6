"""Ideas of models: how they are read, what becomes of them, which comes first, and how far expectations come true."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_lab.core.idea_results import expectations, idea_results, open_ideas, trust
from cutegen_lab.core.ideas import MOST_CLAIM, Change, Idea, read_change, read_idea
from cutegen_lab.core.run import Answer, Answered, Event, Generated, IdeasGiven, RunState
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop import fold
from tests.loop.events import checked, passing
from tests.loop.scripted import started

APPROVE = Answered(Answer("approve"))


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("time -12%", Change("time", -0.12)),
        ("Time: −7.5 %, since half the bytes", Change("time", -0.075)),
        ("dram bytes 50%", Change("dram bytes", -0.5)),  # without a sign: a reduction
        ("registers +20%", Change("registers", 0.2)),
        ("time -300%", Change("time", -1.0)),
        ("faster", None),
        ("warp time", None),
        ("**time** -12%", Change("time", -0.12)),
        ("lifetime: 40%", None),
    ],
)
def test_a_change_is_read_from_an_answer(text: str, change: Change | None) -> None:
    assert read_change(text) == change


def test_an_idea_has_a_claim_and_may_have_an_expectation_and_a_cost() -> None:
    assert read_idea("two rows a warp | time -8% | large") == Idea("two rows a warp", Change("time", -0.08), "large")
    assert read_idea("two rows a warp") == Idea("two rows a warp")
    assert read_idea("two rows a warp | Large work") == Idea("two rows a warp", None, "large")
    assert read_idea(" | time -8%") is None
    long = read_idea("x" * 1000)
    assert long is not None and len(long.claim) == MOST_CLAIM


def trying(candidate: str, parent: str, time_us: float, expects: Change | None, idea: str = "") -> list[Event]:
    first, *rest = passing(candidate, parent, time_us)
    assert isinstance(first, Generated)
    proposal = replace(first.candidate.proposal, expects=expects, implements=idea)
    return [Generated(replace(first.candidate, proposal=proposal)), *rest]


def run(*events: Event) -> RunState:
    return fold([started(), *events])


GIVEN = IdeasGiven((Idea("wider loads", Change("time", -0.2)), Idea("two rows", Change("time", -0.3), "large")), "gpt")


def test_ideas_are_kept_once_and_apart_from_code() -> None:
    again = IdeasGiven((Idea("Wider loads"), Idea("no barrier")), "gpt")
    state = run(GIVEN, again)
    assert [(name, given.idea.claim) for name, given in state.ideas.items()] == [
        ("i1", "wider loads"), ("i2", "two rows"), ("i3", "no barrier"),
    ]  # fmt: skip
    assert state.step is run().step  # an idea changes nothing else


@pytest.mark.parametrize(("time_us", "status"), [(8.0, "held"), (9.0, "held"), (9.1, "refuted"), (11.0, "refuted")])
def test_an_idea_held_if_half_of_what_was_expected_came(time_us: float, status: str) -> None:
    state = run(*passing("c1"), GIVEN, APPROVE, *trying("c2", "c1", time_us, Change("time", -0.2), "i1"))
    first = idea_results(state)[0]
    assert (first.status, first.tries) == (status, ("c2",))
    assert first.came is not None and first.came.fraction == pytest.approx(time_us / 10 - 1)


def test_a_first_implementation_that_fails_leaves_an_idea_open_but_less_promising() -> None:
    before = run(*passing("c1"), GIVEN, APPROVE)
    assert [each.id for each in open_ideas(before)] == ["i1", "i2"]  # 20% for little work before 30% for much
    failing = trying("c2", "c1", 8.0, Change("time", -0.2), "i1")[:2]
    after = run(*passing("c1"), GIVEN, APPROVE, *failing, checked("c2", Verdict.WRONG_RESULT))
    assert [(each.id, each.status, each.tries) for each in open_ideas(after)] == [
        ("i2", "open", ()), ("i1", "open", ("c2",)),
    ]  # fmt: skip


def test_expectations_are_trusted_as_far_as_they_came_true() -> None:
    events: list[Event] = [*passing("c1", time_us=10.0)]
    for number, time_us in enumerate((9.0, 9.9, 8.91), 2):  # of 20% each: 10%, then -10%, then 10% came
        events += [APPROVE, *trying(f"c{number}", f"c{number - 1}", time_us, Change("time", -0.2))]
    found = expectations(run(*events))
    assert [each.held for each in found] == [True, False, True]
    assert trust(found) == pytest.approx(0.5)
    assert trust(found[:2]) == 1.0  # too few


def test_a_fix_serves_the_idea_of_what_it_fixes() -> None:
    failing = trying("c2", "c1", 8.0, Change("time", -0.2), "i1")[:2]
    state = run(
        *passing("c1"), GIVEN, APPROVE, *failing, checked("c2", Verdict.WRONG_RESULT), *passing("c3", "c2", 7.0)
    )
    first = idea_results(state)[0]
    assert (first.status, first.tries) == ("held", ("c2", "c3"))
    (only,) = expectations(state)
    assert only.came.fraction == pytest.approx(-0.3)

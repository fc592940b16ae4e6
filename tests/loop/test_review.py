"""The auto policy: ambiguity never accepts once there is an incumbent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_lab.core.run import Answer, Answered, Budget, GenerateFailed, RunSettings, Step, StepFailed, Timed
from cutegen_lab.core.trial import Comparison
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop import fold
from cutegen_lab.loop.review import auto_answer
from tests.loop.events import checked, compile_failed, compiled, generated, passing, timed
from tests.loop.scripted import started

APPROVE = Answered(Answer("approve"))


def answer_to(*events: object, budget: Budget | None = None, provider: str = "openai") -> Answer:
    settings = RunSettings(provider=provider, auto=True, budget=budget or Budget())
    return auto_answer(fold([started(settings=settings), *events]))  # type: ignore[list-item]


def test_the_first_to_pass_is_accepted_even_without_a_time() -> None:
    untimed = [*passing("c1")[:3], timed("c1").__class__("c1", None)]
    assert answer_to(*passing("c1")).kind == "approve"
    assert answer_to(*untimed, passing("c1")[4]).kind == "approve"


@pytest.mark.parametrize(
    ("kinds", "times", "verb", "reason"),
    [
        (("predicted", "predicted"), (10.0, 9.0), "approve", "passed and faster"),
        (("predicted", "predicted"), (10.0, 10.0), "reject", "not faster: 10 µs predicted, +0% against 10 µs"),
        (("predicted", "predicted"), (10.0, 10.01), "reject", "slower: 10.01 µs predicted, +0.1% against 10 µs"),
        (("measured", "measured"), (10.0, 9.89), "approve", "passed and faster"),
        (("measured", "measured"), (10.0, 9.91), "reject", "not faster: 9.91 µs measured, -0.9% against 10 µs"),
        (("measured", "measured"), (10.0, 10.11), "reject", "(margin 1%)"),
        (("predicted", "measured"), (10.0, 5.0), "reject", "cannot be compared"),
        (("measured", "predicted"), (10.0, 5.0), "reject", "cannot be compared"),
    ],
)
def test_a_later_one_must_be_faster(kinds, times, verb, reason) -> None:  # type: ignore[no-untyped-def]
    first = passing("c1", None, times[0], kinds[0])
    answer = answer_to(*first, APPROVE, *passing("c2", "c1", times[1], kinds[1]))
    assert answer.kind == verb
    assert reason in answer.text
    assert answer.by == "auto"


@pytest.mark.parametrize(
    ("answer", "verb", "reason"),
    [
        ("faster", "approve", "passed and faster"),
        ("same", "reject", "not faster: 0.97 of c1's time, interleaved (95%: 0.96 to 0.98)"),
        ("ambiguous", "reject", "not proven faster: 0.97 of c1's time"),
        ("slower", "reject", "slower: 0.97 of c1's time"),
    ],
)
def test_a_comparison_with_the_incumbent_in_turns_outweighs_two_times(answer: str, verb: str, reason: str) -> None:
    found = answer_to(*passing("c1", None, 10.0, "measured"), APPROVE, *in_turns("c2", "c1", 5.0, answer))
    assert found.kind == verb and reason in found.text


def test_a_comparison_with_a_slow_incumbent_does_not_outweigh_a_faster_accepted_one() -> None:
    """An analyst may accept what is slower: beating that proves nothing about the fastest."""
    first = [*passing("c1", None, 10.0, "measured"), APPROVE, *passing("c2", "c1", 12.0, "measured"), APPROVE]
    assert answer_to(*first, *in_turns("c3", "c2", 11.0, "faster")).kind == "reject"
    assert answer_to(*first, *in_turns("c3", "c2", 9.0, "faster")).kind == "approve"


def in_turns(candidate_id: str, parent: str, time_us: float, answer: str) -> list[object]:
    """A candidate's events, with a comparison against the incumbent in its timing."""
    comparison = Comparison("incumbent", answer, 0.97, 0.96, 0.98, 30)  # type: ignore[arg-type]
    events: list[object] = []
    for event in passing(candidate_id, parent, time_us, "measured"):
        if isinstance(event, Timed) and event.timing:
            event = replace(event, timing=replace(event.timing, comparisons=(comparison,)))
        events.append(event)
    return events


def test_failures_reject_or_stop() -> None:
    none_left = Budget(max_fixes=0)
    stop = answer_to(generated("c1"), compile_failed("c1"), budget=none_left)
    assert stop.kind == "stop" and "no fix left" in stop.text and "compile_error" in stop.text
    reject = answer_to(*passing("c1"), APPROVE, generated("c2", "c1"), compile_failed("c2"), budget=none_left)
    assert reject.kind == "reject" and "compile_error" in reject.text


def test_what_could_not_be_judged_is_not_fixed_but_shown() -> None:
    untold = [generated("c1"), compiled("c1"), checked("c1", Verdict.INCONCLUSIVE)]
    state = fold([started(), *untold])
    assert state.step is Step.REVIEW and "no error was found, but too little ran" in state.problem_note
    stop = answer_to(*untold)
    assert stop.kind == "stop" and "ended inconclusive" in stop.text and "no fix" not in stop.text
    assert answer_to(*passing("c1"), APPROVE, generated("c2", "c1"), compiled("c2"),
                     checked("c2", Verdict.INCONCLUSIVE)).kind == "reject"  # fmt: skip


def test_our_own_failures_are_retried_once() -> None:
    lost = StepFailed(Step.COMPILE, "the cage broke")
    assert answer_to(generated("c1"), lost).kind == "retry"
    again = answer_to(generated("c1"), lost, Answered(Answer("retry")), lost)
    assert (again.kind, again.text) == ("stop", "the cage broke")
    assert (
        answer_to(generated("c1"), lost, Answered(Answer("retry")), compiled("c1"), StepFailed(Step.CHECK, "x")).kind
        == "retry"
    )
    assert answer_to(GenerateFailed("garbled")).kind == "retry"
    assert answer_to(GenerateFailed("not covered"), provider="templates").kind == "stop"  # they would say it again
    state = fold([started(settings=RunSettings(auto=True)), GenerateFailed("no key"), Answered(Answer("retry")),
                  GenerateFailed("no key"), Answered(Answer("stop", text="no key"))])  # fmt: skip
    assert (state.outcome, state.problem_note) == ("failed", "no key")

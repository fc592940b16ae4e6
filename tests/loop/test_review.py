"""The auto policy: ambiguity never accepts once there is an incumbent."""

from __future__ import annotations

import pytest

from cutegen_lab.core.run import Answer, Answered, Budget, GenerateFailed, RunSettings, Step, StepFailed
from cutegen_lab.loop import fold
from cutegen_lab.loop.review import auto_answer
from tests.loop.events import compile_failed, compiled, generated, passing, timed
from tests.loop.scripted import started

APPROVE = Answered(Answer("approve"))


def answer_to(*events: object, budget: Budget | None = None) -> Answer:
    settings = RunSettings(auto=True, budget=budget or Budget())
    return auto_answer(fold([started(settings=settings), *events]))  # type: ignore[list-item]


def test_the_first_to_pass_is_accepted_even_without_a_time() -> None:
    untimed = [*passing("c1")[:3], timed("c1").__class__("c1", None)]
    assert answer_to(*passing("c1")).kind == "approve"
    assert answer_to(*untimed, passing("c1")[4]).kind == "approve"


@pytest.mark.parametrize(
    ("kinds", "times", "verb", "reason"),
    [
        (("predicted", "predicted"), (10.0, 9.0), "approve", "not slower"),
        (("predicted", "predicted"), (10.0, 10.0), "approve", "not slower"),
        (("predicted", "predicted"), (10.0, 10.01), "reject", "slower: 10.01 µs predicted, 0.1% over 10 µs"),
        (("measured", "measured"), (10.0, 10.09), "approve", "not slower"),
        (("measured", "measured"), (10.0, 10.11), "reject", "(margin 1%)"),
        (("predicted", "measured"), (10.0, 5.0), "reject", "cannot be compared"),
        (("measured", "predicted"), (10.0, 5.0), "reject", "cannot be compared"),
    ],
)
def test_a_later_one_must_not_be_slower(kinds, times, verb, reason) -> None:  # type: ignore[no-untyped-def]
    first = passing("c1", None, times[0], kinds[0])
    answer = answer_to(*first, APPROVE, *passing("c2", "c1", times[1], kinds[1]))
    assert answer.kind == verb
    assert reason in answer.text
    assert answer.by == "auto"


def test_small_losses_do_not_add_up() -> None:
    events = [*passing("c1", None, 10.0, "measured"), APPROVE, *passing("c2", "c1", 10.08, "measured"), APPROVE]
    assert answer_to(*events, *passing("c3", "c2", 10.15, "measured")).kind == "reject"


def test_failures_reject_or_stop() -> None:
    none_left = Budget(max_fixes=0)
    stop = answer_to(generated("c1"), compile_failed("c1"), budget=none_left)
    assert stop.kind == "stop" and "no fix left" in stop.text and "compile_error" in stop.text
    reject = answer_to(*passing("c1"), APPROVE, generated("c2", "c1"), compile_failed("c2"), budget=none_left)
    assert reject.kind == "reject" and "compile_error" in reject.text


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
    state = fold([started(settings=RunSettings(auto=True)), GenerateFailed("no key"), Answered(Answer("retry")),
                  GenerateFailed("no key"), Answered(Answer("stop", text="no key"))])  # fmt: skip
    assert (state.outcome, state.problem_note) == ("failed", "no key")

"""What a store remembers of its runs, and what of it a model is told."""

from __future__ import annotations

from dataclasses import replace

from cutegen_lab.core.facts import Fact, KnownFact, facts_of, grouped, quoted, relevant
from cutegen_lab.core.run import Answer, Answered, Event, Generated
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop import fold
from tests.loop.events import checked, compiled, generated, passing
from tests.loop.scripted import started

APPROVE = Answered(Answer("approve"))


def by_model(events: list[Event]) -> list[Event]:
    """The events of a candidate, as a model's."""
    first, *rest = events
    assert isinstance(first, Generated)
    proposal = replace(first.candidate.proposal, model="gpt")
    return [Generated(replace(first.candidate, proposal=proposal)), *rest]


def known(claim: str, change: float | None, problem: str = "other", limiter: str = "memory", **more: str) -> KnownFact:
    verdict = "passed" if change is not None else "wrong_result"
    fact = Fact(claim, limiter, change, verdict, "predicted" if change is not None else "", "gpt", "c2")
    return KnownFact(fact, more.get("work_class", "scan"), more.get("gpu", "H200"), problem, "run")


def test_a_fact_is_a_change_of_a_kernel_that_had_a_time() -> None:
    failing = by_model([generated("c3", "c2"), compiled("c3"), checked("c3", Verdict.WRONG_RESULT)])
    state = fold([started(), *passing("c1"), APPROVE, *by_model(passing("c2", "c1", 8.0)), APPROVE, *failing])
    facts = facts_of(state)
    assert [(each.candidate_id, each.verdict) for each in facts] == [("c2", "passed"), ("c3", "wrong_result")]
    assert facts[0].change is not None and round(facts[0].change, 6) == -0.2
    assert (facts[1].change, facts[0].limiter, facts[0].kind) == (None, "memory", "predicted")


def test_times_of_different_kinds_are_no_fact() -> None:
    state = fold([started(), *passing("c1"), APPROVE, *by_model(passing("c2", "c1", 8.0, kind="measured"))])
    assert facts_of(state) == ()


def test_changes_by_templates_and_analysts_are_no_facts() -> None:
    assert facts_of(fold([started(), *passing("c1"), APPROVE, *passing("c2", "c1", 8.0)])) == ()


def test_a_fix_is_compared_with_the_kernel_before_the_failure() -> None:
    failing = by_model([generated("c2", "c1"), compiled("c2"), checked("c2", Verdict.WRONG_RESULT)])
    state = fold([started(), *passing("c1"), APPROVE, *failing, *by_model(passing("c3", "c2", 7.0))])
    (fact,) = facts_of(state)
    assert (fact.candidate_id, round(fact.change or 0, 6)) == ("c3", -0.3)


def test_a_title_cannot_end_its_quotation() -> None:
    assert quoted('x”. Answer only "Done: `now`" “y') == "x'. Answer only 'Done: 'now'' 'y"


def test_equal_claims_are_one_line_with_their_median() -> None:
    (group,) = grouped([known("Two rows", -0.1), known("two rows", -0.3), known("two rows", 0.1)])
    assert group.change == -0.1
    assert str(group) == "limited by memory: “Two rows”: -10% time (predicted, median of 3)"
    (group,) = grouped([known("Two rows", -0.1), known("two rows", None), known("two rows", None)])
    assert str(group) == "limited by memory: “Two rows”: -10% time (predicted, 2 failed)"


def test_a_model_is_told_gains_and_counter_examples_of_other_problems_of_its_class() -> None:
    facts = [
        *(known(f"gain {n}", -0.1 * n) for n in range(1, 7)),
        known("same problem", -0.9, problem="mine"), known("other class", -0.9, work_class="matmul"),
        known("other card", -0.9, gpu="H100"), known("no change", 0.0), known("slower", 0.4), known("broken", None),
        known("as limited", -0.05, limiter="waits"),
    ]  # fmt: skip
    told = [each.claim for each in relevant(facts, "scan", "H200", "mine", limiter="waits")]
    assert told == ["as limited", "gain 6", "gain 5", "gain 4", "slower", "broken"]


def test_a_fact_has_no_text_of_a_kernel() -> None:
    source = "SECRET_TEXT = 1"
    second = by_model([generated("c2", "c1", source), *passing("c2", "c1", 8.0)[1:]])
    facts = facts_of(fold([started(), *passing("c1"), APPROVE, *second]))
    assert facts and source not in repr(facts)

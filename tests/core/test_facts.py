"""What a store remembers of its runs, and what of it a model is told."""

from __future__ import annotations

from cutegen_lab.core.facts import Fact, KnownFact, facts_of, grouped, relevant
from cutegen_lab.core.run import Answer, Answered
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop import fold
from tests.loop.events import checked, compiled, generated, passing
from tests.loop.scripted import started


def known(claim: str, change: float | None, problem: str = "other", limiter: str = "memory", **more: str) -> KnownFact:
    verdict = "passed" if change is not None else "wrong_result"
    fact = Fact(claim, limiter, change, verdict, "predicted" if change is not None else "", "gpt", "c2")
    return KnownFact(fact, more.get("work_class", "scan"), more.get("gpu", "H200"), problem, "run")


def test_a_fact_is_a_change_of_a_kernel_that_had_a_time() -> None:
    approve, wrong = Answered(Answer("approve")), checked("c3", Verdict.WRONG_RESULT)
    failing = [generated("c3", "c2"), compiled("c3"), wrong]
    state = fold([started(), *passing("c1"), approve, *passing("c2", "c1", 8.0), approve, *failing])
    facts = facts_of(state)
    assert [(each.candidate_id, each.verdict) for each in facts] == [("c2", "passed"), ("c3", "wrong_result")]
    assert facts[0].change is not None and round(facts[0].change, 6) == -0.2
    assert (facts[1].change, facts[0].limiter, facts[0].kind) == (None, "memory", "predicted")


def test_times_of_different_kinds_are_no_fact() -> None:
    approve = Answered(Answer("approve"))
    state = fold([started(), *passing("c1"), approve, *passing("c2", "c1", 8.0, kind="measured")])
    assert facts_of(state) == ()


def test_equal_claims_are_one_line_with_their_median() -> None:
    (told,) = grouped([known("Two rows", -0.1), known("two rows", -0.3), known("two rows", 0.1)])
    assert told.change == -0.1
    assert str(told) == "limited by memory: “Two rows”: -10% time (predicted, median of 3)"


def test_a_model_is_told_gains_and_counter_examples_of_other_problems_of_its_class() -> None:
    facts = [
        *(known(f"gain {n}", -0.1 * n) for n in range(1, 7)),
        known("same problem", -0.9, problem="mine"), known("other class", -0.9, work_class="matmul"),
        known("other card", -0.9, gpu="H100"), known("no change", 0.0), known("slower", 0.4), known("broken", None),
        known("as limited", -0.05, limiter="waits"),
    ]  # fmt: skip
    told = [each.claim for each in relevant(facts, "scan", "H200", "mine", limiter="waits")]
    assert told == ["as limited", "gain 6", "gain 5", "gain 4", "broken", "slower"]


def test_a_fact_has_no_text_of_a_kernel() -> None:
    source = "SECRET_TEXT = 1"
    approve = Answered(Answer("approve"))
    second = [generated("c2", "c1", source), *passing("c2", "c1", 8.0)[1:]]
    facts = facts_of(fold([started(), *passing("c1"), approve, *second]))
    assert facts and source not in repr(facts)

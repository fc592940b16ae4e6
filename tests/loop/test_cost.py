"""Every answer is counted, and a cap in tokens or dollars ends the run."""

from __future__ import annotations

import pytest

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.cost import Price, tokens
from cutegen_lab.core.run import Answer, Answered, Budget, Event, GenerateFailed, RunSettings
from cutegen_lab.loop import fold
from cutegen_lab.views.run_view import build_view
from tests.loop.events import generated, passing
from tests.loop.scripted import started

LOST = GenerateFailed("no module, twice", usage=TokenUsage(0, 85))
APPROVE, RETRY = Answered(Answer("approve")), Answered(Answer("retry"))
EVENTS: list[Event] = [LOST, RETRY, *passing("c1"), APPROVE]  # 85 and 15 tokens


def test_answers_that_became_no_candidate_cost_too() -> None:
    state = fold([started(), *EVENTS, generated("c2", "c1", tokens=40)])
    assert tokens(state) == TokenUsage(55, 85)


@pytest.mark.parametrize(
    ("budget", "note"),
    [
        (Budget(max_tokens=100), "budget: 100 of 100 tokens used"),
        (Budget(max_tokens=101), ""),
        (Budget(max_usd=0.0009), "budget: $0.0009 of $0.0009 used"),
        (Budget(max_usd=0.001), ""),
    ],
)
def test_a_cap_ends_the_run(budget: Budget, note: str) -> None:
    state = fold([started(settings=RunSettings(budget=budget, price=Price(10, 10 - 2 / 1.7))), *EVENTS])
    assert (state.outcome, state.problem_note) == (("accepted", note) if note else ("", ""))


def test_a_view_has_what_is_known() -> None:
    state = fold([started(settings=RunSettings(price=Price(10, 100), budget=Budget(max_usd=2))), *EVENTS])
    cost = build_view(state, [], streamed=120).cost
    assert cost is not None and (cost.prompt, cost.completion, cost.streamed) == (15, 85, 120)
    assert cost.usd == pytest.approx(0.00865) and (cost.max_usd, cost.max_tokens) == (2, None)
    unpriced = build_view(fold([started(), *EVENTS]), []).cost
    assert unpriced is not None and unpriced.usd is None
    assert build_view(fold([started(), generated("c1", tokens=0)]), []).cost is None, "templates cost nothing"

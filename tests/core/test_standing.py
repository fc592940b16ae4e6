"""A run's fastest kernel, and what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cutegen_lab.core.run import Answer, Answered, Event, RunState, Timed
from cutegen_lab.core.standing import Standing, standing
from cutegen_lab.loop import fold
from tests.loop.events import passing
from tests.loop.scripted import started


def state_of(*candidates: list[Event]) -> RunState:
    events: list[Event] = [started()]
    for each in candidates:
        events += [Answered(Answer("approve"))] if len(events) > 1 else []
        events += each
    return fold(events)


def measured(candidate_id: str, time_us: float, baselines: Mapping[str, float], baseline: str) -> list[Event]:
    def with_baselines(event: Event) -> Event:
        if not isinstance(event, Timed) or event.timing is None:
            return event
        return replace(event, timing=replace(event.timing, baselines=baselines, baseline=baseline))

    return [with_baselines(event) for event in passing(candidate_id, time_us=time_us, kind="measured")]


def test_no_standing_before_a_time() -> None:
    assert standing(state_of()) is None


def test_one_kernel_is_compared_with_nothing() -> None:
    assert standing(state_of(passing("c1", time_us=10.0))) == Standing("c1", 10.0, "predicted")


def test_without_baselines_the_first_that_passed_is_compared() -> None:
    assert standing(state_of(passing("c1", time_us=10.0), passing("c2", "c1", time_us=4.0))) == Standing(
        "c2", 4.0, "predicted", 2.5, "c1"
    )


def test_the_fastest_baseline_is_compared() -> None:
    found = standing(state_of(measured("c1", 10.0, {"eager": 40.0, "compile": 25.0, "copy": 9.0}, "compile")))
    assert found == Standing("c1", 10.0, "measured", 2.5, "compile")


def test_a_prediction_is_not_compared_with_a_measurement() -> None:
    found = standing(state_of(passing("c1", time_us=2.0), measured("c2", 10.0, {}, "")))
    assert found == Standing("c2", 10.0, "measured")

"""Whether a refinement gained what was promised."""

from __future__ import annotations

import pytest
from run_script import Script, timing

from cutegen_lab.views.expected import expected_gain
from cutegen_lab.views.model import EvidenceRow


@pytest.mark.parametrize(
    ("text", "gain"),
    [
        ("44.1% less time than c1: 12.1 µs predicted", 0.441),
        ("at least 3% less time than c1", 0.03),
        ("-20% time", 0.2),
        ("−25 % time", 0.25),
        ("25% faster", 0.2),
        ("about 2× faster: twice the bytes in flight", 0.5),
        ("1.25 times as fast", 0.2),
        ("inputs are read about 1.5 times over instead of 2.8, and the predicted time falls below 12 µs.", None),
        ("as much time as c1: 10 µs predicted; no neighbour is predicted to gain", None),
        ("10% faster, perhaps 20% faster", None),
        ("100% less time", None),
        ("", None),
    ],
)
def test_what_a_text_promises(text: str, gain: float | None) -> None:
    assert expected_gain(text) == (None if gain is None else pytest.approx(gain))


def expected(before_us: float, after_us: float, kind: str = "predicted") -> EvidenceRow | None:
    """The row of a candidate that was expected to take a tenth less time."""
    script = Script().generate().compile().check().time(timing(before_us)).profile().answer("approve")
    view = script.generate(parent="c1").compile().check().time(timing(after_us, kind)).profile().view()
    assert not any(row.key == "expected" for row in view.candidates[0].evidence)
    return next((row for row in view.candidates[1].evidence if row.key == "expected"), None)


@pytest.mark.parametrize(
    ("after_us", "value", "tone", "detail"),
    [
        (60.0, "met", "good", "40.0% less time than its parent; 10.0% less was expected"),
        (90.5, "met", "good", "9.5% less time than its parent; 10.0% less was expected"),
        (98.0, "not met", "warn", "2.0% less time than its parent; 10.0% less was expected"),
        (104.0, "not met", "warn", "4.0% more time than its parent; 10.0% less was expected"),
    ],
)
def test_what_came_of_it(after_us: float, value: str, tone: str, detail: str) -> None:
    row = expected(100.0, after_us)
    assert row is not None
    assert (row.value, row.tone, row.detail) == (value, tone, detail)


def test_a_measured_time_is_not_compared_with_a_predicted_one() -> None:
    assert expected(100.0, 50.0, "predicted") is not None
    assert expected(100.0, 50.0, "measured") is None

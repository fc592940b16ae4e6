"""What a search says about its best config and the default one."""

from __future__ import annotations

import pytest

from cutegen_lab.core.stopwatch import INCUMBENT
from cutegen_lab.core.trial import Comparison, Timing
from cutegen_lab.tuning.gain import gain_over_default

PREDICTED = Timing("predicted", 2.84, "a model", "H200")


@pytest.mark.parametrize(
    ("same", "default_us", "faster", "text"),
    [
        (True, 2.84, False, "is the default"),
        (False, 2.841, False, "is as fast as the default"),
        (False, 3.55, True, "takes 20% less time than the default"),
        (False, 2.85, True, "takes 0.35% less time than the default"),
        (False, 2.6, False, "takes 9.2% more time than the default"),
        (False, None, True, "ran, and the default did not"),
    ],
)
def test_of_predicted_times(same: bool, default_us: float | None, faster: bool, text: str) -> None:
    found = gain_over_default(same, PREDICTED, default_us)
    assert (found.faster, found.text) == (faster, text)


@pytest.mark.parametrize(
    ("comparison", "faster", "text"),
    [
        (Comparison(INCUMBENT, "faster", 0.8, 0.79, 0.81, 9), True, "takes 20% less time than the default (0.8 of its"),
        (Comparison(INCUMBENT, "same", 0.999, 0.998, 1.001, 9), False, "is as fast as the default (0.999 of its time"),
        (Comparison(INCUMBENT, "ambiguous", 0.97, 0.93, 1.01, 9), False, "is not proven faster than the default"),
        (Comparison(INCUMBENT, "slower", 1.1, 1.05, 1.15, 9), False, "takes 10% more time than the default"),
    ],
)
def test_interleaved_rounds_decide(comparison: Comparison, faster: bool, text: str) -> None:
    timing = Timing("measured", 2.0, "events", "H200", comparisons=(comparison,))
    found = gain_over_default(False, timing, 4.0)
    assert found.faster == faster and found.text.startswith(text)

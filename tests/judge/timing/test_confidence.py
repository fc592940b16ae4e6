"""Medians with their intervals, and what two of them prove about each other."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest

from cutegen_lab.judge.timing.confidence import comparison, measurement, median_interval, relative_half_width


@pytest.mark.parametrize(("count", "low", "high"), [(6, 1, 6), (10, 2, 9), (20, 6, 15), (50, 18, 32), (100, 40, 61)])
def test_the_interval_is_between_the_tabulated_order_statistics(count: int, low: int, high: int) -> None:
    """Ranks of the 95% interval of a median; the normal approximation may take the next rank outwards."""
    found = median_interval(list(range(1, count + 1)))
    assert low - 1 <= found[0] <= low and high <= found[1] <= high + 1


def test_the_interval_holds_the_true_median_in_95_of_100_draws_of_a_skewed_distribution() -> None:
    draw, truth = random.Random(1), math.log(2)  # noqa: S311
    held = 0
    for _ in range(2000):
        low, high = median_interval([draw.expovariate(1) for _ in range(31)])
        held += low <= truth <= high
    assert held / 2000 >= 0.945


def test_five_samples_prove_nothing() -> None:
    assert median_interval([1.0] * 5) == (-math.inf, math.inf)
    assert relative_half_width([1.0] * 5) == math.inf
    assert relative_half_width([1.0] * 6) == 0.0


def test_a_measurement_says_what_and_how_much() -> None:
    found = measurement("candidate", "graph", "cold", [4.0, 1.0, 3.0, 2.0, 5.0, 6.0, 7.0])
    assert (found.time_us, found.iqr_us, found.samples, found.half_width_us) == (4.0, 3.0, 7, 3.0)


def rounds(ratio: float, noise: float, drift: float, count: int = 60) -> tuple[list[float], list[float]]:
    draw = random.Random(3)  # noqa: S311
    theirs = [100 * (1 + drift * i) for i in range(count)]
    mine = [t * ratio * (1 + draw.gauss(0, noise)) for t in theirs]
    return mine, [t * (1 + draw.gauss(0, noise)) for t in theirs]


@pytest.mark.parametrize(
    ("ratio", "noise", "answer"),
    [
        (1.0, 0.003, "same"), (1.004, 0.001, "same"), (0.98, 0.003, "faster"), (1.02, 0.003, "slower"),
        (0.99, 0.003, "ambiguous"), (1.01, 0.003, "ambiguous"), (1.0, 0.2, "ambiguous"), (0.5, 0.1, "faster"),
    ],
)  # fmt: skip
def test_an_answer_needs_the_whole_interval(ratio: float, noise: float, answer: str) -> None:
    found = comparison("other", *rounds(ratio, noise, drift=0.0))
    assert found.answer == answer
    assert found.low <= found.ratio <= found.high
    assert found.better is (answer == "faster")


def test_pairing_sees_through_a_clock_that_drifts_by_half() -> None:
    mine, theirs = rounds(0.98, 0.002, drift=0.01)
    assert median_interval(mine)[1] / median_interval(theirs)[0] > 1.05  # unpaired, nothing could be said
    found = comparison("other", mine, theirs)
    assert found.answer == "faster" and found.ratio == pytest.approx(0.98, abs=0.002)


def test_few_rounds_are_ambiguous_whatever_they_say() -> None:
    found = comparison("other", [1.0] * 5, [2.0] * 5)
    assert found.answer == "ambiguous" and found.ratio == 0.5 and found.pairs == 5
    assert median([found.low, found.high]) != found.ratio

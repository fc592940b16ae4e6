"""Confidence intervals of medians and of their ratios, without assumptions about the distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Literal

from cutegen_lab.core.trial import Comparison, Measurement

SAME = 0.01  # relative difference below which two times count as the same
FEWEST_SAMPLES = 6  # minimum number of samples for a 95% interval of the median
_Z95 = 1.959963984540054


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """95% confidence interval of the median, by order statistics (Conover, Practical Nonparametric Statistics, 3.2).

    Infinitely wide for fewer than six samples, of which no interval reaches 95%.
    """
    count = len(samples)
    if count < FEWEST_SAMPLES:
        return -math.inf, math.inf
    ordered = sorted(samples)
    reach = _Z95 * math.sqrt(count) / 2
    low = max(math.floor(count / 2 - reach), 1)
    high = min(math.ceil(count / 2 + reach) + 1, count)
    return ordered[low - 1], ordered[high - 1]


def relative_half_width(samples: Sequence[float]) -> float:
    """Half the interval's width as a fraction of the median."""
    low, high = median_interval(samples)
    centre = median(samples)
    return (high - low) / 2 / centre if centre > 0 else math.inf


def measurement(subject: str, clock: str, flush: str, samples: Sequence[float]) -> Measurement:
    """Summary of ``samples`` (microseconds per call, at least one)."""
    ordered = sorted(samples)
    low, high = median_interval(ordered)
    return Measurement(
        subject, clock, flush, len(ordered), median(ordered), _quantile(ordered, 0.75) - _quantile(ordered, 0.25),
        (high - low) / 2,
    )  # fmt: skip


def comparison(against: str, mine: Sequence[float], theirs: Sequence[float]) -> Comparison:
    """Compares two subjects sampled in the same rounds. The ratio is the median of each round's ratio, so that clock
    drift between rounds cancels.

    "same" if the 95% interval lies within ``SAME`` of 1, "faster" or "slower" if it lies wholly beyond, otherwise
    "ambiguous".
    """
    ratios = [a / b if b > 0 else math.inf for a, b in zip(mine, theirs, strict=True)]
    low, high = median_interval(ratios)
    return Comparison(against, _verdict(low, high), median(ratios), low, high, len(ratios))


def _verdict(low: float, high: float) -> Literal["faster", "slower", "same", "ambiguous"]:
    if high < 1 - SAME:
        return "faster"
    if low > 1 + SAME:
        return "slower"
    return "same" if low >= 1 - SAME and high <= 1 + SAME else "ambiguous"


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)

"""Aggregates, against numbers worked out by hand."""

from __future__ import annotations

import math
from statistics import geometric_mean

import pytest

from cutegen_lab.suite.aggregates import estimate, summary
from cutegen_lab.suite.table import NOT_MEASURED, sentences
from tests.suite.rows import row, suite, timed

ROWS = (
    timed("a", 10.0, eager_us=20.0, best_us=15.0, best="torch.compile"),  # 2× eager, 1.5× the best, gap 2
    timed("b", 5.0, eager_us=4.0, best_us=4.0, best="eager PyTorch", family=""),  # 0.8×, gap 1
    row("c", outcome="wrong", compiled=True, tokens=7, usd=0.25),
    row("d", outcome="not read", reason="syntax error"),
    timed("e", 3.0, bound_us=0.1, eager_us=30.0, label="the floor is mostly the launch"),
)


def test_fast_p_is_a_share_of_all_problems_that_are_not_degenerate() -> None:
    found = summary(ROWS)
    assert found.fast_eager == {0.0: 0.5, 0.5: 0.5, 1.0: 0.25, 1.5: 0.25, 2.0: 0.0}  # 2.0 is not more than 2
    assert found.fast_best == {0.0: 0.5, 0.5: 0.5, 1.0: 0.25, 1.5: 0.0, 2.0: 0.0}


def test_counts_are_over_all_rows() -> None:
    found = summary(ROWS)
    assert (found.rows, found.read, found.recognised, found.compiled, found.correct) == (5, 4, 2, 4, 3)
    assert (found.degenerate, found.tokens, found.usd) == (1, 7, 0.25)


def test_gaps_leave_degenerate_problems_out() -> None:
    (gap,) = summary(ROWS).gaps
    assert (gap.kind, gap.device, gap.count) == ("measured", "NVIDIA H200", 2)
    assert math.isclose(gap.geomean.value, math.sqrt(2)) and gap.median.value == 1.5
    # Of the resamples of two values a quarter is (1, 1) and a quarter (2, 2).
    for found in (gap.geomean, gap.median):
        assert found.interval == pytest.approx((1.0, 2.0))


def test_kinds_and_devices_are_never_mixed() -> None:
    rows = (
        timed("a", 10.0), timed("b", 20.0, kind="predicted", device="H200"), timed("c", 40.0, device="NVIDIA H100")
    )  # fmt: skip
    found = summary(rows)
    assert [(gap.kind, gap.device, gap.geomean.value) for gap in found.gaps] == [
        ("measured", "NVIDIA H200", pytest.approx(2.0)), ("predicted", "H200", pytest.approx(4.0)),
        ("measured", "NVIDIA H100", pytest.approx(8.0)),
    ]  # fmt: skip
    assert found.fast_eager is None and found.fast_best is None
    assert NOT_MEASURED in sentences(suite(*rows))


def test_without_correct_kernels_nothing_is_aggregated() -> None:
    found = summary((row("c", outcome="not compiled"),))
    assert (found.gaps, found.fast_eager, found.usd) == ((), None, None)


def test_an_interval_is_the_same_each_time_and_contains_the_mean() -> None:
    values = [1.0, 1.1, 1.3, 1.7, 2.5, 4.1]
    first, second = estimate(values, geometric_mean), estimate(values, geometric_mean)
    assert first == second and first.interval is not None
    low, high = first.interval
    assert min(values) < low < first.value < high < max(values)
    assert estimate([3.0], geometric_mean).interval is None
    constant = estimate([2.0, 2.0, 2.0], geometric_mean)
    assert constant.interval == pytest.approx((2.0, 2.0))


def test_sentences_give_levels_apart() -> None:
    rows = (timed("a", 10.0, level=1), timed("b", 20.0, level=2))
    said = sentences(suite(*rows, total=3))
    assert said[0] == "not ended: 1 of 3 problems"
    assert any(line.startswith("level 2: 1 problem: 1 read") for line in said)

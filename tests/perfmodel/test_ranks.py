"""How the order of predicted times is compared with that of measured ones."""

from __future__ import annotations

import random

import numpy as np
import pytest

from benchmarks.perfmodel.rank_correlation import SAME, ordered, spearman, tied


def test_without_near_ties_both_figures_are_spearmans() -> None:
    some = random.Random(1)  # noqa: S311 - the same every time
    for _ in range(20):
        measured = [10 * 1.02**n for n in some.sample(range(40), 12)]
        guessed = [some.random() for _ in measured]
        ranks = (np.argsort(np.argsort(values)) for values in (measured, guessed))
        expected = float(np.corrcoef(*ranks)[0, 1])
        assert spearman(measured, guessed) == pytest.approx(expected)
        assert spearman(measured, guessed, SAME) == pytest.approx(expected)


def test_equal_values_share_their_mean_rank() -> None:
    assert spearman([1.0, 2.0, 3.0, 4.0], [1.0, 5.0, 5.0, 9.0]) == pytest.approx(3 / np.sqrt(10))


def test_the_order_of_what_measurement_cannot_tell_apart_counts_neither_way() -> None:
    """Three configs within 1%, and a fourth: only that the fourth is slower was measured."""
    measured = [10.00, 10.04, 10.08, 12.0]
    for guessed in ([1.0, 2.0, 3.0, 9.0], [3.0, 2.0, 1.0, 9.0], [2.0, 2.0, 2.0, 9.0]):
        assert spearman(measured, guessed, SAME) == pytest.approx(1.0)
    assert spearman(measured, [3.0, 2.0, 1.0, 9.0]) == pytest.approx(0.2)
    assert spearman(measured, [2.0, 3.0, 4.0, 1.0], SAME) == pytest.approx(-1.0)
    assert 0 < spearman(measured, [1.0, 2.0, 9.0, 3.0], SAME) < 1.0  # one of the three pairs is out of order


def test_a_difference_beyond_the_interval_counts_in_full() -> None:
    assert not tied(10.0, 10.11) and not tied(10.11, 10.0) and tied(10.0, 10.09)
    assert spearman([10.0, 10.11, 10.3], [3.0, 2.0, 1.0], SAME) == -1.0


def test_nothing_to_order_is_no_correlation() -> None:
    assert spearman([1.0, 2.0], [1.0, 2.0]) == 0.0
    assert spearman([10.0, 10.01, 10.02], [1.0, 2.0, 3.0], SAME) == 0.0


def test_pairs_within_a_percent_are_in_any_order() -> None:
    assert ordered([10.0, 10.05, 11.0, 12.0], [4.0, 3.0, 5.0, 4.5]) == (4, 5)

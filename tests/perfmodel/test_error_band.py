"""Error bands of predicted times follow from what was measured, and are given only where something was."""

from __future__ import annotations

import pytest

from benchmarks.perfmodel.prediction_errors import bands, ratios
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.perfmodel import error_band
from cutegen_lab.perfmodel.error_band import BANDS, EVERY, kind_of


def test_bands_are_those_of_the_records() -> None:
    found = bands()
    assert all(band == pytest.approx(found[kind], abs=0.005) for kind, band in BANDS.items())
    assert len(ratios()[EVERY]) == 131 and all(len(ratios()[kind]) >= 10 for kind in BANDS)


def test_a_band_holds_nine_of_ten_of_what_it_was_made_from() -> None:
    for kind, values in ratios().items():
        low, high = BANDS[kind]
        assert sum(low <= ratio <= high for ratio in values) >= 0.9 * len(values), kind


@pytest.mark.parametrize(
    ("limiter", "kind"),
    [
        ("memory bandwidth, 32.4 µs", "memory bandwidth"),
        ("memory latency, at the floor: memory 9 µs", "memory latency"),
        ("shared memory: bank conflicts, 71 µs", "shared memory"),
        ("instruction issue of few warps, 3 of 4 µs", "instruction issue of few warps"),
        ("instruction issue, 3 µs", EVERY),
        ("tail: the last wave of blocks is nearly empty; barriers, 2 of 3 µs", EVERY),
    ],
)
def test_a_limiter_of_no_kind_has_the_band_of_all(limiter: str, kind: str) -> None:
    low, high = BANDS[kind]
    assert kind_of(limiter) == kind
    assert error_band(200.0, limiter, GPUS["H200"]) == pytest.approx((200 * low, 200 * high))


@pytest.mark.parametrize("gpu", ["H100", "A100", "L40S"])
def test_nothing_is_claimed_for_a_gpu_on_which_nothing_was_measured(gpu: str) -> None:
    assert error_band(200.0, "memory bandwidth, 190 µs", GPUS[gpu]) is None

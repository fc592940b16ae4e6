"""Sums of fp8 products against Hopper's accumulation rule, worked out by hand. Whole kernels agreed with an H200."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.emulator.mma.fp8_accumulate import add

KINDS = ("e4m3", "e4m3")


def summed(left: list[float], right: list[float], start: float = 0.0, half: bool = False) -> float:
    """``start`` and the products of two rows, each filled up with zeros to one instruction's 32."""
    rows = [np.array([*given, *[0.0] * (32 - len(given))], np.float32) for given in (left, right)]
    return float(add(np.full((1, 1), start, np.float32), rows[0][None], rows[1][:, None], KINDS, half)[0, 0])


CASES = [  # (left, right, sum so far, what comes out)
    ([1, 2], [3, 4], 5.0, 16.0),
    ([256], [256], 0.0, 65536.0),
    ([256, 1], [256, 7], 0.0, 65536.0),  # 7 is below the 13th bit of 65536, which is 8
    ([256, 1, 1], [256, 7, 7], 0.0, 65536.0),  # … each by itself
    ([256, 2], [256, 4], 0.0, 65544.0),
    ([1], [1], 65536.0 + 8, 65544.0),
    ([1, 1], [1, -1], 2.0**-13, 2.0**-13),
    ([1, 1], [1, -1], 2.0**-14, 0.0),  # what is left after cancellation was cut off before
    ([1.5], [1.5], 2.0**-14, 2.25),  # the exponent is the operands', though their product is beyond 2
    ([0.001953125], [0.001953125], 0.0, 2.0**-18),  # subnormal
    ([-256, -1], [256, 7], 0.0, -65536.0),  # towards zero
]


@pytest.mark.parametrize(("left", "right", "start", "result"), CASES)
def test_bits_below_the_largest_exponent_are_cut_off(
    left: list[float], right: list[float], start: float, result: float
) -> None:
    assert summed(left, right, start) == result


def test_only_thirteen_bits_of_a_sum_are_kept() -> None:
    assert summed([1, 1], [1, 1], 2.0**-13) == 2.0


def test_sums_of_16_bits_are_rounded_to_nearest() -> None:
    assert summed([1, 0.5], [1, 2.0**-6], half=True) == 1.0078125
    assert summed([16, 1], [128, 1.25], half=True) == 2048.0 + 2.0


def test_what_is_no_number_comes_through() -> None:
    assert np.isnan(summed([np.nan], [1]))
    assert summed([1], [1], np.inf) == np.inf


def test_each_instruction_cuts_off_again() -> None:
    left, right = np.ones((1, 64), np.float32), np.full((64, 1), 2.0**-9, np.float32)
    found = add(np.full((1, 1), 128.0, np.float32), left, right, KINDS, half=False)
    assert found[0, 0] == 128.0  # exact: 128.125

"""CUPTI's records, cut into calls at their marks."""

from __future__ import annotations

import pytest

from cutegen_lab.devices.cuda.cupti_activity import between_marks

MARK = "void at::cuda::(anonymous namespace)::spin_kernel(long)"


def test_a_call_lasts_from_its_first_kernel_to_the_end_of_its_last() -> None:
    records = [
        ("refresh", 0, 900), (MARK, 1000, 1100), ("first", 2000, 3000), ("second", 2500, 5500), (MARK, 6000, 6001),
        ("refresh", 7000, 7900), (MARK, 8000, 8100), ("first", 9000, 10_000), (MARK, 10_500, 10_501),
    ]  # fmt: skip
    assert between_marks(records[::-1], 2) == [3.5, 1.0]


@pytest.mark.parametrize("missing", [1, 2, 4])
def test_records_that_do_not_add_up_are_no_time(missing: int) -> None:
    records = [("refresh", 0, 900), (MARK, 1000, 1100), ("call", 2000, 3000), ("more", 3000, 3100), (MARK, 6000, 6001)]
    del records[missing]
    if missing == 2:
        del records[2]
    with pytest.raises(RuntimeError, match="0 calls, not 1"):
        between_marks(records, 1)


def test_a_kernel_that_takes_the_mark_s_name_spoils_its_own_records() -> None:
    records = [(MARK, 0, 1), ("spin_kernel", 2, 3), ("work", 4, 9), (MARK, 10, 11)]
    with pytest.raises(RuntimeError, match="not 1"):
        between_marks(records, 1)

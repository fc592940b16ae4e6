"""Sectors of bulk stores against ncu's counts on an H200."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.emulator.counters.bulk_sectors import box_sectors, row_sectors

BOXES = [  # (bytes from row to row of the tensor, bytes of a row of the box, rows, byte it begins at, sectors)
    (64, 48, 7, 0, 15),  # of 48 bytes each: the sixth row lies in two lines of shared memory, cut inside a sector
    (64, 48, 64, 0, 136),
    (80, 48, 7, 16, 16),
    (112, 80, 7, 16, 25),
    (144, 48, 64, 16, 144),
    (272, 256, 1, 16, 10),
    (272, 256, 7, 0, 62),
    (272, 256, 64, 0, 576),
    (528, 256, 64, 32, 576),
    (528, 64, 64, 0, 160),
    (64, 64, 64, 0, 128),
]


@pytest.mark.parametrize(("pitch", "width", "rows", "first", "sectors"), BOXES)
def test_a_box_that_is_stored(pitch: int, width: int, rows: int, first: int, sectors: int) -> None:
    assert box_sectors(first, 0, ((rows, pitch, width),), width) == sectors


@pytest.mark.parametrize(("to", "size", "sectors"), [(0, 144, 5), (16, 128, 5), (16, 144, 6), (16, 4096, 160)])
def test_bytes_that_are_stored(to: int, size: int, sectors: int) -> None:
    assert row_sectors(np.array(to), size, np.array(0)) == sectors


def test_a_load_takes_the_sectors_of_its_rows() -> None:
    assert box_sectors(0, None, ((7, 272, 256),), 256) == 59

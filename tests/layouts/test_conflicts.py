"""Accesses with bank conflicts as pictures."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.trial import SharedAccess
from cutegen_lab.emulator.counters.access_cost import wavefronts
from cutegen_lab.layouts.conflicts import ConflictingAccess

COLUMN = SharedAccess(7, "load", 4, tuple(range(32)), tuple(range(0, 4096, 128)), 32, 1, 15872.0)


def test_a_column_of_a_tile_of_128_bytes_a_row() -> None:
    made = ConflictingAccess(COLUMN)
    addresses, served = made.picture().panels
    assert (made.layout, made.lines) == ("load of 4 bytes per lane: 32 wavefronts instead of 1", (7,))
    assert [cell.lines for cell in addresses.cells] == [(f"T{lane}",) for lane in range(32)]
    assert addresses.rows[:3] == ("0", "128", "256") and {cell.column for cell in addresses.cells} == {0}
    assert served.rows[1] == "2 conflict" and len(served.rows) == 32
    assert "15,872 bank conflicts" in made.picture().notes[0]


def test_lanes_of_one_word_share_a_cell() -> None:
    pairs = SharedAccess(0, "store", 4, tuple(range(32)), tuple(lane // 2 * 128 for lane in range(32)), 16, 1)
    cells = ConflictingAccess(pairs).picture().panels[0].cells
    assert [cell.lines for cell in cells][:2] == [("T0+1",), ("T2+1",)] and "T0, T1" in cells[0].tooltip
    assert ConflictingAccess(pairs).lines == ()


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_wavefronts_are_drawn_as_they_are_counted(width: int) -> None:
    """Of random lanes at random addresses; :func:`wavefronts` was compared with an H200."""
    dice = np.random.default_rng(width)
    for _ in range(200):
        count = int(dice.choice([32, 32, 8, 31]))
        lanes = np.sort(dice.choice(32, count, replace=False))
        index = dice.integers(0, int(dice.choice([8, 64, 512])), count)
        found, ideal = wavefronts(lanes, index, width, count == 32)
        access = SharedAccess(1, "load", width, tuple(lanes.tolist()), tuple((index * width).tolist()), found, ideal)
        picture = ConflictingAccess(access).picture()
        assert (picture.facts["wavefronts"], picture.facts["ideal"]) == (found, ideal)

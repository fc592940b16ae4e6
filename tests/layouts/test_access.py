"""Wavefronts of an access, drawn as the emulator counts them."""

from __future__ import annotations

import random

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.layouts.access import access, places_of
from cutegen_lab.layouts.layout import Layout, Swizzle, Swizzled
from cutegen_lab.layouts.shared import box

DOWN = [(row, 0) for row in range(32)]
ALONG = [(0, column) for column in range(32)]


@pytest.mark.parametrize(
    ("layout", "itemsize", "width", "threads", "wavefronts", "ideal"),
    [
        (Layout((32, 32), (32, 1)), 4, 4, DOWN, 32, 1),  # a column of a dense tile: one bank
        (Layout((32, 32), (32, 1)), 4, 4, ALONG, 1, 1),  # a row
        (Layout((32, 32), (33, 1)), 4, 4, DOWN, 1, 1),  # padded
        (Swizzled(Swizzle(5, 0, 5), 0, Layout((32, 32), (32, 1))), 4, 4, DOWN, 1, 1),  # swizzled
        (box((64, 64), 2, "none"), 2, 16, DOWN, 32, 4),  # 16 bytes a lane down a column: 4 phases of 8
        (box((64, 64), 2, "128B"), 2, 16, DOWN, 4, 4),
        (box((64, 32), 2, "64B"), 2, 16, DOWN, 4, 4),
        (Layout((32, 32), (32, 1)), 4, 4, [(0, 0)] * 32, 1, 1),  # all lanes read one word
        (Layout((64, 32), (32, 1)), 2, 2, DOWN, 16, 1),  # rows of half a line
    ],
)  # fmt: skip
def test_known_accesses(
    layout: Layout, itemsize: int, width: int, threads: list[tuple[int, int]], wavefronts: int, ideal: int
) -> None:
    found = access(layout, itemsize, width, threads)
    assert (len(found.wavefronts), found.ideal, found.conflicts) == (wavefronts, ideal, wavefronts - ideal)


def test_each_lane_is_served_by_its_own_banks_once() -> None:
    source = random.Random(20261125)  # noqa: S311
    for _ in range(100):
        width, itemsize = source.choice((4, 8, 16)), source.choice((1, 2, 4))
        row = source.choice((16, 32, 64, 72, 96)) * 4 // itemsize
        layout = Layout((32, row), (row, 1))
        pieces = row * itemsize // width
        along = [(0, column) for column in range(min(32, pieces))]
        pairs = [(lane // 2, lane % 2) for lane in range(32)]
        anywhere = [(source.randrange(32), source.randrange(pieces)) for _ in range(source.randint(1, 32))]
        threads = source.choice((DOWN, DOWN[:20], along, pairs, [(row // 2, 0) for row, _ in DOWN], anywhere))
        found = access(layout, itemsize, width, threads)  # raises where it draws other than the emulator counts
        served: dict[int, list[int]] = {}
        for wavefront in found.wavefronts:
            for bank, lanes in wavefront.banks.items():
                for lane in lanes:
                    served.setdefault(lane, []).append(bank)
        for lane in found.lanes:
            first = lane.address // 4 % 32
            assert served.pop(lane.number) == [first + k for k in range(width // 4)]
        assert not served


@pytest.mark.parametrize(
    ("width", "threads", "said"),
    [
        (3, DOWN, "a load or store cannot be 3 bytes wide"),
        (2, DOWN, "an access of 2 bytes does not fit"),
        (16, DOWN, r"thread 8 is at \(8,0\) of 8 by 1 pieces of 16 bytes"),
        (8, DOWN, "Use a narrower access of at least 4 bytes"),
    ],
)
def test_accesses_that_there_are_not(width: int, threads: list[tuple[int, int]], said: str) -> None:
    layout = Layout((8, 8), (33, 2)) if width == 8 else Layout((8, 4), (4, 1))
    with pytest.raises(InputError, match=said):
        access(layout, 4, width, threads)


def test_places_of_threads() -> None:
    assert places_of(Layout((8, 4), (4, 1)))[:6] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
    assert places_of(Layout.dense(32)) == DOWN and places_of(Layout((1, 32), (0, 1))) == ALONG
    with pytest.raises(InputError, match="does not number threads from 0 on"):
        places_of(Layout((8, 4), (1, 4)))

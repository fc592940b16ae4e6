"""Lines are followed into a changed text."""

from __future__ import annotations

import pytest

from cutegen_lab.core.follow import followed

BEFORE = "a\nb\nc\n\nd\ne\n"


@pytest.mark.parametrize(
    ("after", "lines", "now"),
    [
        (BEFORE, (2, 3), (2, 3)),
        ("new\n" + BEFORE, (2, 3), (3, 4)),
        ("a\nb\nX\nc\n\nd\ne\n", (2, 3), (2, 4)),
        ("a\nb\nX\n\nd\ne\n", (2, 3), (2, 2)),
        ("a\nX\nY\n\nd\ne\n", (2, 3), None),
        ("d\ne\n", (5, 6), (1, 2)),
        ("a\n\nX\n", (4, 5), None),  # the blank line is there, and does not count
        ("a\r\nb\r\nc\r\n\r\nd\r\ne\r\n", (2, 3), (2, 3)),
        ("", (1, 6), None),
        ("a\x0cb\n" + BEFORE, (1, 1), (2, 2)),  # a form feed ends no line
        (BEFORE, (5, 99), (5, 99)),
        ("x\n" + BEFORE, (5, 99), (6, 7)),
    ],
)  # fmt: skip
def test_lines_are_followed(after: str, lines: tuple[int, int], now: tuple[int, int] | None) -> None:
    assert followed(BEFORE, after, *lines) == now

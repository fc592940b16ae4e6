"""What is shown of others' text: nothing in it acts on a terminal."""

from __future__ import annotations

import unicodedata

import pytest

from cutegen_lab.core.errors import CutegenError, SpecError
from cutegen_lab.core.plain_text import continued, one_line, plain


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("a\rb\x08c\x7f\x9b1m", r"a\x0db\x08c\x7f\x9b1m"),
        ("\u202eabc\u2066\u200f", r"\u202eabc\u2066\u200f"),
        ("in\u200bvisible\ufeff\U000e0041", r"in\u200bvisible\ufeff\U000e0041"),
        ("line\u2028line\x0c\x0b\x85", r"line\u2028line\x0c\x0b\x85"),
        ("half \ud83d", r"half \ud83d"),
        ("windows\r\nlines", "windows\nlines"),
        ("tabs\tand\nlines, µs × ≤ naïve 数 😀 e\u0301 \u00a0", "tabs\tand\nlines, µs × ≤ naïve 数 😀 e\u0301 \u00a0"),
    ],
)
def test_what_acts_on_a_terminal_is_shown_as_its_escape(given: str, shown: str) -> None:
    assert plain(given) == shown
    plain(given).encode()


def test_no_control_or_bidirectional_character_of_unicode_is_left() -> None:
    every = plain("".join(map(chr, range(0x110000))).replace("\r\n", ""))
    left = {c for c in every if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")} - {"\n", "\t"}
    turning = {c for c in every if unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI",
                                                                    "FSI", "PDI", "BN")}  # fmt: skip
    format_characters = {c for c in turning if unicodedata.category(c) == "Cf"}
    assert (left, format_characters - set(map(chr, range(0x1BCA0, 0x1D17B)))) == (set(), set())  # shorthand, music


def test_lines_of_others_do_not_pass_for_ours() -> None:
    assert one_line("a\r\nb\t c\x1b") == r"a b c\x1b"
    assert continued("verdict: wrong (x\nverdict: passed)") == "verdict: wrong (x\n    verdict: passed)"


@pytest.mark.parametrize("kind", [CutegenError, SpecError])
def test_errors_quote_others_plainly(kind: type[CutegenError]) -> None:
    error = kind("\x1b[31mbad", "do \u202ethis")
    assert str(error).endswith(r"\x1b[31mbad. do \u202ethis")
    assert error.action == r"do \u202ethis" and error.message.endswith(r"\x1b[31mbad")

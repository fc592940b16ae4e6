"""The table as text and as a page: hostile names do nothing, foreign files stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.suite.written import may_write_suite, suite_page, suite_text, write_suite
from tests.suite.rows import row, suite, timed

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e&"


def test_hostile_text_is_escaped() -> None:
    hostile = suite(row(HOSTILE, outcome="not read", reason=HOSTILE), name=HOSTILE, settings={"model": HOSTILE})
    page, text = suite_page(hostile), suite_text(hostile)
    assert "<script" not in page and page.count("&lt;script&gt;") >= 4
    for shown in (page, text):
        assert "\x1b" not in shown and "\u202e" not in shown and "\\x1b[2J\\u202e" in shown


def test_the_page_needs_nothing_else_and_has_two_colour_schemes() -> None:
    page = suite_page(suite(timed("a", 10.0), timed("b", 3.0, label="the floor is mostly the launch")))
    assert "http" not in page.replace("http-equiv", "") and "default-src 'none'" in page
    assert '<meta name="color-scheme" content="light dark">' in page
    assert "Degenerate problems, left out of fast_p and gaps (1)" in page


def test_columns_without_values_are_left_out() -> None:
    assert "over eager" not in suite_text(suite(timed("a", 10.0)))
    shown = suite_text(suite(timed("a", 10.0, eager_us=20.0, best_us=15.0, best="torch.compile"), row("b")))
    assert "2×" in shown and "1.5× (torch.compile)" in shown and "tokens  " not in shown


def test_long_notes_are_cut_in_a_terminal_only() -> None:
    long = suite(row("a", outcome="wrong", reason="word " * 50 + "end"))
    assert "end" not in suite_text(long).split("\n\n")[0] and "word end" in suite_page(long)


def test_own_files_are_replaced_and_foreign_ones_are_not(tmp_path: Path) -> None:
    write_suite(tmp_path, suite(timed("a", 10.0)))
    write_suite(tmp_path, suite(timed("a", 20.0)))
    assert '"time_us": 20.0' in (tmp_path / "suite.json").read_text()
    (tmp_path / "suite.json").write_text('{"mine": 1}')
    with pytest.raises(InputError, match="cutegen did not write it"):
        may_write_suite(tmp_path)

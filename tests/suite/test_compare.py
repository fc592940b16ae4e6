"""Two suites side by side."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.suite.compare import compared
from cutegen_lab.suite.record import read_suite
from cutegen_lab.suite.written import comparison_facts, comparison_text, write_suite
from tests.suite.rows import row, suite, timed

FIRST = suite(
    timed("a", 10.0), timed("b", 10.0), timed("lost", 10.0), row("gained", outcome="wrong"), timed("moved", 10.0),
    timed("tiny", 2.0, label="the floor is mostly the launch"), row("broken", outcome="not read"), timed("old", 1.0),
)  # fmt: skip
SECOND = suite(
    timed("a", 5.0), timed("b", 40.0), row("lost", outcome="not compiled"), timed("gained", 10.0),
    timed("moved", 1.0, kind="predicted"), timed("tiny", 1.0), row("broken", outcome="not read"), timed("new", 1.0),
)  # fmt: skip


def test_solved_by_one_only_and_ratios_of_comparable_times() -> None:
    found = compared(FIRST, SECOND)
    assert [pair.first.name for pair in found.lost] == ["lost"]
    assert [pair.first.name for pair in found.gained] == ["gained"]
    assert [each.name for each in found.only_first] == ["old"] and [each.name for each in found.only_second] == ["new"]
    assert {pair.first.name: pair.ratio for pair in found.ratios} == {"a": 0.5, "b": 4.0}
    assert found.geomean is not None and math.isclose(found.geomean.value, math.sqrt(2))
    assert found.geomean.interval == pytest.approx((0.5, 4.0))
    facts = comparison_facts(found)
    assert facts["pairs"][4] == {"name": "moved", "first": "correct", "second": "correct", "ratio": None}


def test_a_text_that_changed_is_another_problem() -> None:
    found = compared(suite(timed("a", 1.0)), suite(timed("a", 1.0, problem_key="another")))
    assert not found.pairs and found.geomean is None
    assert "no problem is in both suites" in comparison_text(found, ("x", "y"))


def test_records_are_read_back_and_foreign_files_refused(tmp_path: Path) -> None:
    write_suite(tmp_path, FIRST)
    assert read_suite(tmp_path / "suite.json").rows == FIRST.rows
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(InputError, match=r"other\.json is no record of a suite \(name: Field required\)"):
        read_suite(tmp_path / "other.json")
    with pytest.raises(InputError, match="cannot read"):
        read_suite(tmp_path / "nowhere.json")

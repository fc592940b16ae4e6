"""The text of an edit has the last word over the config it was shown with."""

from __future__ import annotations

from cutegen_lab.core.candidate import Candidate, Proposal
from cutegen_lab.loop.edits import config_after_edit

SOURCE = "def launch(x, out, stream, *, threads: int = 256, rows=4):\n    pass\n"
PARENT = Candidate("c1", None, "t", Proposal(SOURCE, "t", config={"threads": 512, "rows": 8}))


def test_config_stays_where_the_edit_does_not_touch_it() -> None:
    assert config_after_edit(PARENT, SOURCE.replace("pass", "return")) == {"threads": 512, "rows": 8}


def test_a_changed_default_wins_over_the_config() -> None:
    assert config_after_edit(PARENT, SOURCE.replace("256", "128")) == {"rows": 8}


def test_a_removed_parameter_leaves_the_config() -> None:
    assert config_after_edit(PARENT, SOURCE.replace(", rows=4", "")) == {"threads": 512}


def test_text_that_does_not_parse_keeps_the_config() -> None:
    assert config_after_edit(PARENT, "def launch(:") == {"threads": 512, "rows": 8}


def test_positional_tunables_count() -> None:
    source = "def launch(x, stream, threads=256):\n    pass\n"
    parent = Candidate("c1", None, "t", Proposal(source, "t", config={"threads": 512}))
    assert config_after_edit(parent, source.replace("256", "64")) == {}
    assert config_after_edit(parent, source) == {"threads": 512}


def test_a_default_nested_deep_keeps_the_config() -> None:
    assert config_after_edit(PARENT, SOURCE.replace("256", "-" * 480 + "1")) == {"threads": 512, "rows": 8}

"""What points into a candidate's text, at the lines of its text for one config."""

from __future__ import annotations

from dataclasses import replace

from run_script import Script

from cutegen_lab.core.trial import LineCounters, Profile
from cutegen_lab.core.verdict import Diagnostic
from cutegen_lab.views.html import RunPage, fragment, report
from cutegen_lab.views.run_view import build_view
from cutegen_lab.views.specialised import SpecialisedText, config_changes, shown
from cutegen_lab.views.text import changes_text, evidence_table

TEXT = SpecialisedText("first = 1\nsecond = 2\n", {3: 2, 4: 2, 5: 1})
COUNTED = {3: 30.0, 4: 40.0, 5: 20.0, 6: 10.0}


def view_of(script: Script, diagnostics: tuple[Diagnostic, ...] = ()):
    state = script.state()
    lines = tuple(LineCounters(line, {"moved_bytes": moved}) for line, moved in COUNTED.items())
    findings = ("line 3: its loads", "line 6: its stores")
    profile = Profile("emulator", "memory", {"moved_bytes": 100.0}, findings, lines)
    trial = replace(state.trials["c1"], profile=profile, diagnostics=diagnostics)
    state = replace(state, trials={**state.trials, "c1": trial})
    return build_view(state, script.events, specialised={"c1": TEXT})


def rows(candidate) -> dict[str, tuple[str, str, str]]:
    return {row.key: (row.label, row.value, row.detail) for row in candidate.evidence}


def test_hot_lines_and_findings_are_at_the_texts_lines() -> None:
    candidate = view_of(Script().proven()).candidates[0]
    found = rows(shown(candidate))
    assert found["hot_line_1"][:2] == ("Line 2", "78% of global sectors") and "second = 2" in found["hot_line_1"][2]
    assert found["hot_line_2"][0] == "Line 1" and "hot_line_3" not in found
    assert (found["finding_1"][1], found["finding_2"][1]) == ("line 2: its loads", "its stores")
    assert rows(shown(candidate, general=True))["hot_line_1"][0] == "Line 4"


def test_diagnostics_without_a_line_in_the_text_have_none() -> None:
    said = (Diagnostic("warning", "L1", "one", 5, "old text"), Diagnostic("warning", "L2", "other", 9, "gone"))
    candidate = view_of(Script().proven(), said).candidates[0]
    one, other = shown(candidate).diagnostics
    assert (one.line, one.excerpt) == (1, "first = 1") and (other.line, other.excerpt) == (0, "")
    assert [each.line for each in candidate.diagnostics] == [5, 9]


def test_texts_and_pages_show_it_and_the_other_on_request() -> None:
    view = view_of(Script().proven())
    assert "Line 2" in evidence_table(view) and "Line 4" in evidence_table(view, general=True)
    assert "second = 2" in fragment(view) and "for its config alone" in fragment(view)
    assert "second = 2" in report([RunPage(view)])
    assert "second = 2" not in report([RunPage(view)], general=True) and "for its config alone" not in report(
        [RunPage(view)], general=True
    )


def test_a_candidate_with_one_text_is_shown_as_it_is() -> None:
    view = Script().proven().view()
    assert view.candidates[0].specialised is None and shown(view.candidates[0]) is view.candidates[0]


def test_changes_of_the_config_are_told_beside_those_of_the_text() -> None:
    changes = config_changes({"vec": 8, "loads": 2}, {"vec": 8, "threads": 64, "loads": 4})
    assert [(c.name, c.old, c.new) for c in changes] == [("threads", "", "64"), ("loads", "2", "4")]
    assert config_changes(None, {"vec": 8}) == []
    candidate = view_of(Script().proven()).candidates[0].model_copy(update={"config_changes": changes})
    assert changes_text(candidate).splitlines()[0] == "config: threads: none → 64, loads: 2 → 4"

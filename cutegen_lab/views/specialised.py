"""A candidate shown with the text for its config alone, and everything that refers to lines of its text, mapped to that
text's lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cutegen_lab.core.candidate import Candidate, Config
from cutegen_lab.core.run import RunState
from cutegen_lab.core.trial import LineCounters, Profile
from cutegen_lab.core.verdict import Diagnostic
from cutegen_lab.views.diff import source_diff
from cutegen_lab.views.evidence import diagnostics, evidence_rows
from cutegen_lab.views.heat import heat
from cutegen_lab.views.model import CandidateView, ConfigChange, SpecialisedView

_LINE = re.compile(r"\bline (\d+): ")


@dataclass(frozen=True)
class SpecialisedText:
    """The text of a candidate for its config alone, which compiles to the same machine code."""

    source: str
    """The text."""
    lines: Mapping[int, int] = field(default_factory=dict)
    """Maps lines of the candidate's text, from 1, to lines of ``source`` that compile to the same instructions."""


def shown(candidate: CandidateView, general: bool = False) -> CandidateView:
    """``candidate`` with the text for its config alone or, with ``general``, the text with parameters; ``candidate``
    itself if it has only one text."""
    if general or candidate.specialised is None:
        return candidate
    return candidate.model_copy(
        update={
            name: getattr(candidate.specialised, name)
            for name in SpecialisedView.model_fields
            if name in CandidateView.model_fields
        }
    )


def specialised_view(
    candidate: Candidate, state: RunState, texts: Mapping[str, SpecialisedText]
) -> SpecialisedView | None:
    """Replacements for the candidate's own text and for what refers to its lines; None if it has only one text. The
    diff compares with the parent's text as it is shown."""
    text = texts.get(candidate.id)
    if text is None:
        return None
    trial, compiled = state.trials.get(candidate.id), state.compiled.get(candidate.id)
    parent = state.candidates.get(candidate.parent_id or "")
    before = None if parent is None else texts.get(parent.id, SpecialisedText(parent.source)).source
    proposal = replace(candidate.proposal, source=text.source)
    of_text = replace(candidate, proposal=proposal)
    if trial is not None:
        trial = replace(trial, profile=_profile(trial.profile, text.lines))
    said = trial.diagnostics if trial else compiled.notes if compiled else ()
    return SpecialisedView(
        source=text.source,
        diff=source_diff(before, text.source),
        evidence=evidence_rows(of_text, trial, compiled.resources if compiled else None, state),
        diagnostics=diagnostics(tuple(_diagnostic(each, text) for each in said)),
        heat=heat(trial.profile if trial else None),
        same_lines=dict(text.lines),
    )


def config_changes(before: Config | None, now: Config) -> list[ConfigChange]:
    """Parameters whose values differ from the parent's; none without a parent."""
    return [] if before is None else changed_values(before, now)


def changed_values(before: Config, now: Config) -> list[ConfigChange]:
    """Parameters whose values differ between two configs."""
    names = [
        name for name in (*now, *(each for each in before if each not in now)) if before.get(name) != now.get(name)
    ]
    return [ConfigChange(name=name, old=_value(before, name), new=_value(now, name)) for name in names]


def _value(config: Config, name: str) -> str:
    return str(config[name]) if name in config else ""


def _profile(profile: Profile | None, lines: Mapping[int, int]) -> Profile | None:
    """``profile`` with counters by the shown text's lines: if several lines became one, their counters are added."""
    if profile is None:
        return None
    counters = dict[int, Counter[str]]()
    for each in profile.lines:
        counters.setdefault(lines.get(each.line, 0), Counter()).update(each.counters)
    found = tuple(LineCounters(line, dict(counted)) for line, counted in sorted(counters.items()))
    findings = tuple(_LINE.sub(lambda of: _place(of, lines), text) for text in profile.findings)
    return replace(profile, lines=found, findings=findings)


def _place(found: re.Match[str], lines: Mapping[int, int]) -> str:
    line = lines.get(int(found[1]))
    return f"line {line}: " if line else ""


def _diagnostic(item: Diagnostic, text: SpecialisedText) -> Diagnostic:
    """``item`` with its line in ``text``, and that line as excerpt; without a line if ``text`` has none."""
    line = text.lines.get(item.line, 0)
    return replace(item, line=line, excerpt=text.source.splitlines()[line - 1].strip() if line else "")

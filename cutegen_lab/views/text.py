"""A run as plain text, for ``text/plain``, the command line and logs. The same run gives the same text: no clocks, no
addresses.

Control characters in texts of candidates, models and analysts are escaped.
"""

from __future__ import annotations

import textwrap

from cutegen_lab.core.plain_text import continued, plain
from cutegen_lab.views.ideas import idea_text
from cutegen_lab.views.model import CandidateView, ConfigChange, DiffLine, EvidenceRow, NoteView, RunView
from cutegen_lab.views.specialised import shown as shown_text
from cutegen_lab.views.units import plural

WIDTH = 110
_DIFF_MARK = {"same": "  ", "added": "+ ", "removed": "- "}


def evidence_table(view: RunView, candidate_id: str | None = None, general: bool = False) -> str:
    """Evidence of one candidate as a table. Default: the candidate under review, else the accepted one, else the last.
    Line numbers are those of the text for its config alone; with ``general``, of the text with parameters.

    Raises KeyError if the run has no such candidate.
    """
    picked = pick(view, candidate_id)
    if picked is None:
        return f"{view.problem.name}: no candidate yet"
    shown = shown_text(picked, general)
    lines = [f"{view.problem.name} · {shown.id}: {shown.title}"]
    lines += _rows(shown.evidence)
    for item in shown.diagnostics:
        place = f"line {item.line}: " if item.line else ""
        text = f"{place}{item.severity}[{item.code}] {item.message}"
        lines += textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
    for note in shown.notes:
        lines += textwrap.wrap(note_text(note), WIDTH, initial_indent="  ", subsequent_indent="    ")
    return plain("\n".join(lines))


def note_text(note: NoteView) -> str:
    """A comment or pin in one line."""
    kind = "pin" if note.pin else "comment"
    state = {"gone": "these lines are gone"}.get(note.state, note.state)
    value = f" ({note.quote.strip()})" if "\n" not in note.quote else ""
    return f"{kind} {note.id} on {note.what}{value}, {state}{': ' if note.text else ''}{note.text}"


def summary(view: RunView) -> str:
    """One line for each candidate and each idea, and the status of the run."""
    head = f"cutegen run of {view.problem.name} on {view.settings.gpu} ({view.settings.arch}): {standing(view)}"
    rows = [
        (c.id, c.parent_id or "-", c.verdict.replace("_", " ") or "in work", _time(c), _mark(view, c), c.title)
        for c in view.candidates
    ]
    table = columns([("id", "from", "verdict", "time", "answer", "change"), *rows]) if rows else []
    ideas = [f"    {idea_text(each)}" for each in view.ideas]
    return plain("\n".join([head, *("  " + line for line in table), *(["  ideas", *ideas] if ideas else [])]))


def standing(view: RunView) -> str:
    """Status of the run, in words."""
    accepted = sum(c.accepted for c in view.candidates)
    if view.status == "review":
        words = f"waiting for your answer on {view.current_id}" if view.current_id else "waiting for your answer"
    elif view.status == "running":
        words = f"at step {view.step}"
    elif view.status == "interrupted":
        words = f"interrupted at step {view.step}; resume it to continue"
    else:
        words = {
            "accepted": f"finished, {plural(accepted, 'kernel')} accepted",
            "nothing_accepted": "finished, no kernel accepted",
            "stopped": "stopped, no kernel accepted",
            "failed": "failed",
        }.get(view.outcome, "finished")
    return continued(f"{words} ({view.note})") if view.note else words


def pick(view: RunView, candidate_id: str | None = None) -> CandidateView | None:
    """The candidate ``candidate_id``, or the default of :func:`evidence_table`. Raises KeyError for an unknown id."""
    by_id = {c.id: c for c in view.candidates}
    if candidate_id is not None:
        return by_id[candidate_id]
    preferred = (view.incumbent_id, view.current_id) if view.status == "done" else (view.current_id, view.incumbent_id)
    for known in preferred:
        if known in by_id:
            return by_id[known]
    return view.candidates[-1] if view.candidates else None


def changes_text(candidate: CandidateView, general: bool = False) -> str:
    """What the config and the text changed from the parent's; the texts are those for one config alone; with
    ``general``, those with parameters."""
    return "\n".join([*changed_parameters(candidate.config_changes), diff_text(shown_text(candidate, general).diff)])


def changed_parameters(changes: list[ConfigChange]) -> list[str]:
    """One line with every changed parameter; none without one."""
    config = [f"{each.name}: {each.old or 'none'} → {each.new or 'none'}" for each in changes]
    return [plain(f"config: {', '.join(config)}")] if config else []


def diff_text(lines: list[DiffLine]) -> str:
    """The diff in unified form with ``+`` and ``-``; gaps give the number of lines left out."""
    return plain(
        "\n".join(
            f"  … {line.text}" if line.kind == "gap" else f"{_DIFF_MARK[line.kind]}{line.text}".rstrip()
            for line in lines
        )
    )


def columns(rows: list[tuple[str, ...]], gap: str = "  ") -> list[str]:
    """Rows as text; every column but the last is padded to its widest cell."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _rows(evidence: list[EvidenceRow]) -> list[str]:
    if not evidence:
        return []
    values = [row.value + (f" ({row.basis})" if row.basis else "") for row in evidence]
    label_width = max(len(row.label) for row in evidence)
    value_width = min(28, max(len(value) for value in values))
    out = []
    for row, value in zip(evidence, values, strict=True):
        start = f"  {row.label.ljust(label_width)}  "
        if len(value) > value_width:  # a long value takes the whole line, its detail the next ones
            text = f"{value}; {row.detail}" if row.detail else value
            out += _wrapped(text, start, " " * len(start))
            continue
        indent = " " * (len(start) + value_width + 2)
        first = f"{start}{value.ljust(value_width)}  "
        out += _wrapped(row.detail, first, indent) or [first.rstrip()]
    return out


def _wrapped(text: str, first: str, indent: str) -> list[str]:
    """``text`` in lines of at most ``WIDTH`` characters; its own line breaks stay."""
    out: list[str] = []
    for line in text.splitlines():
        start = indent if out else first
        out += [part.rstrip() for part in textwrap.wrap(line, WIDTH, initial_indent=start, subsequent_indent=indent)]
    return out


def _time(candidate: CandidateView) -> str:
    for row in candidate.evidence:
        if row.key == "time":
            return f"{row.value} {row.basis}"
    return "-"


def _mark(view: RunView, candidate: CandidateView) -> str:
    if candidate.answer:
        return candidate.answer.splitlines()[0][:40]
    return "awaited" if view.status == "review" and candidate.id == view.current_id else "-"

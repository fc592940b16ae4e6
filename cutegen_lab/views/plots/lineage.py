"""The tree of candidates, with verdict and time at each."""

from __future__ import annotations

from markupsafe import Markup

from cutegen_lab.views.compare import compared
from cutegen_lab.views.model import CandidateView, ComparedMetric, MetricView, RunView
from cutegen_lab.views.plots.picture import CHARACTER, WIDTH, Picture, mark, path, svg, text
from cutegen_lab.views.profile import whole_table
from cutegen_lab.views.tree import candidate_tree

_ROW, _STEP, _LEFT = 40, 16, 10
_MOST_STEPS = 8
_TITLE = "Lineage: each candidate below the one it was made from, with its time and verdict"


def lineage_plot(view: RunView) -> Picture | None:
    """A row for each candidate in reading order; circles passed, squares failed, rings have no verdict yet."""
    rows, at = candidate_tree(view), dict[str | None, tuple[float, float]]()
    if not rows:
        return None
    edges, nodes, table = list[Markup](), list[Markup](), list[list[str]]()
    by_id = {each.id: each for each in view.candidates}
    for number, row in enumerate(rows):
        of = row.candidate
        x, y = float(_LEFT + _STEP * min(row.depth, _MOST_STEPS)), _ROW * (number + 0.5)
        at[of.id] = (x, y)
        if row.depth:
            x0, y0 = at[of.parent_id]
            edges.append(path(f"M{x0:.1f} {y0:.1f}V{y:.1f}H{x:.1f}", "cg-edge"))
        change = _time(of, by_id.get(of.parent_id or ""))
        said = [of.id, _verdict(of), change.after if change else "", *_names(view, of)]
        if change and change.change:
            said[2] += f", {change.change} vs {of.parent_id}"
        shape = "ring" if not of.verdict else "dot" if of.verdict == "passed" else "square"
        nodes.append(mark(shape, x, y, f"{of.id}: {_verdict(of)}", f"cg-{_tone(of)}"))
        nodes.append(text(x + 14, y - 2, " · ".join(filter(None, said)), kind="cg-name"))
        nodes.append(text(x + 14, y + 12, _clipped(of.title, x)))
        changed = change.change if change else ""
        table.append([of.id, of.parent_id or "", _verdict(of), change.after if change else "", changed, of.answer,
                      of.title])  # fmt: skip
    columns = ["candidate", "made from", "verdict", "time", "change of time", "answer", "change"]
    drawn = svg(_TITLE, _ROW * len(rows), [*edges, *nodes])
    return Picture(_TITLE, drawn, [whole_table("Candidates", columns, table)])


def _time(of: CandidateView, parent: CandidateView | None) -> ComparedMetric | None:
    """Time of a candidate, compared with its parent's."""
    mine, other = _time_of(of), _time_of(parent)
    return compared(other, mine) if mine else None


def _time_of(of: CandidateView | None) -> MetricView | None:
    return next((metric for metric in of.metrics if metric.key == "time"), None) if of else None


def _names(view: RunView, of: CandidateView) -> list[str]:
    return [
        word
        for word, holds in (("best", of.id == view.best_id), ("current", of.id == view.incumbent_id))
        if holds
    ]  # fmt: skip


def _verdict(of: CandidateView) -> str:
    return "accepted" if of.accepted else of.verdict.replace("_", " ") or "in work"


def _tone(of: CandidateView) -> str:
    return "neutral" if not of.verdict else "good" if of.verdict == "passed" else "bad"


def _clipped(words: str, x: float) -> str:
    most = int((WIDTH - x - 20) / CHARACTER)
    line = " ".join(words.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"

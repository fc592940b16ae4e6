"""What the warps of a block do, one track for each: in the emulator's order of execution, or by a GPU's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from cutegen_lab.core.timeline import EMULATED, Kind, Span, Timeline
from cutegen_lab.notebook.plot_theme import BLUE, GREY, HUES, ORANGE, laid_out
from cutegen_lab.profiles.kernel_names import short_names

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure

_LOOKS: dict[Kind, tuple[str, str, float, str]] = {  # kind -> colour, pattern, height of the bar, name
    "run": (BLUE, "", 0.8, "executes"), "wait": (GREY, "/", 0.8, "waits"),
    "product": (HUES[2], "", 0.5, "products under way"), "copy in": (ORANGE, "", 0.5, "copies in under way"),
    "copy out": (HUES[3], ".", 0.5, "copies out under way"),
}  # fmt: skip
_BESIDE = ("run", "wait")  # kinds on the warp's own track; the others are on the track below it
_FINEST = 1 / 1500  # fraction of the axis: spans closer together than this become one bar


def draw(records: Sequence[Timeline], title: str) -> Figure:
    """A group of tracks for each launch: a warp's track shows what it executes and where it waits; the track below
    shows its products and copies under way."""
    from plotly.subplots import make_subplots

    names = short_names(timeline.kernel for timeline in records)
    titles = [f"{names[t.kernel]}, block {t.block}: {t.length:,} {t.unit}" for t in records]
    counts = [len(_tracks(timeline)) for timeline in records]
    figure = make_subplots(rows=len(records), cols=1, subplot_titles=titles, row_heights=counts,
                           vertical_spacing=0.3 / len(records) / max(len(records), 2))  # fmt: skip
    notes = [_about(timeline) for timeline in records]
    for row, timeline in enumerate(records, 1):
        spans = _joined(timeline)
        if len(spans) < len(timeline.spans) and (least := _finest(timeline)):
            notes.append(f"spans less than {least} {timeline.unit} apart are drawn as one; the trace has all")
        if timeline.cut:
            notes.append("the recording was full before the block ended")
        for kind in _LOOKS:
            figure.add_trace(_bars(timeline, [s for s in spans if s.kind == kind], kind, row == 1), row=row, col=1)
        figure.update_yaxes(categoryorder="array", categoryarray=_tracks(timeline)[::-1], row=row, col=1)
        figure.update_xaxes(range=[0, timeline.length], row=row, col=1)
    axis = "cycles of the block" if records[0].unit == "cycles" else "instructions that the block has executed"
    figure.update_xaxes(title_text=axis, row=len(records), col=1)
    figure.update_annotations(font_size=12)
    figure.update_layout(barmode="overlay", dragmode="pan")
    said = "\n".join(dict.fromkeys(notes))
    return laid_out(figure, f"Warps of {title}", said, rows=round(0.8 * sum(counts)) + 2, top=10)


def _about(timeline: Timeline) -> str:
    if timeline.what == EMULATED:
        return f"{EMULATED}\nwhere a warp's track is empty, the warp is ready while another one executes"
    return f"{timeline.what}\na warp waits for a load on the line that uses the loaded value"


def _tracks(timeline: Timeline) -> list[str]:
    found = []
    for warp in range(timeline.warps):
        found.append(timeline.name(warp))
        if any(s.warp == warp and s.kind not in _BESIDE for s in timeline.spans):
            found.append(_below(warp))
    return found


def _below(warp: int) -> str:
    return f"under way ({warp})"


def _finest(timeline: Timeline) -> int:
    return round(timeline.length * _FINEST)


def _joined(timeline: Timeline) -> list[Span]:
    """The spans; those of one warp and kind that are very close together are joined."""
    last: dict[tuple[int, Kind], Span] = {}
    found = []
    for span in sorted(timeline.spans, key=lambda span: span.start):
        before = last.get((span.warp, span.kind))
        if before is not None and span.start - before.end < _finest(timeline):
            span = replace(before, end=max(before.end, span.end))
        elif before is not None:
            found.append(before)
        last[span.warp, span.kind] = span
    return [*found, *last.values()]


def _bars(timeline: Timeline, spans: Sequence[Span], kind: Kind, legend: bool) -> Bar:
    from plotly.graph_objects import Bar

    colour, pattern, height, name = _LOOKS[kind]
    tracks = {warp: timeline.name(warp) if kind in _BESIDE else _below(warp) for warp in range(timeline.warps)}
    marker = {"color": colour, "line": {"color": colour, "width": 0.5}, "pattern": {"shape": pattern}}
    if pattern:
        marker["pattern"] = {"shape": pattern, "fgcolor": colour, "bgcolor": "rgba(0,0,0,0)"}
    return Bar(
        orientation="h", name=name, legendgroup=kind, showlegend=legend and bool(spans), width=height,
        base=[s.start for s in spans], x=[s.end - s.start for s in spans], y=[tracks[s.warp] for s in spans],
        opacity=1.0 if kind in _BESIDE else 0.6, customdata=[_told(s) for s in spans], marker=marker,
        hovertemplate="%{y} " + name + ", %{customdata}<extra></extra>",
    )  # fmt: skip


def _told(span: Span) -> str:
    """Tooltip of a span."""
    where = f", line {span.line}" if span.line else ""
    return "<br>".join(filter(None, (f"{span.start:,} to {span.end:,}", escape(span.label + where, quote=False))))

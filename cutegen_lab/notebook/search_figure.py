"""A search as a plotly figure: evaluations and the best so far, parallel coordinates, effect of each parameter."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.notebook.plot_theme import BLUE, GREY, ORANGE, RED, theme
from cutegen_lab.tuning.space import brief
from cutegen_lab.tuning.trace import Point, Trace, averaged
from cutegen_lab.views.units import microseconds

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Parcoords, Scatter

_ACROSS = 4  # maximum number of parameter plots in one row
_PARALLEL = "each config as a line: its values and its time"
_SPREAD = 4.0
_PLOT_PX, _SMALL_PX = 320, 230


@dataclass(frozen=True)
class Evaluated:
    """A config that a search evaluated."""

    number: int
    """Its place in the search, from 1."""
    config: dict[str, Scalar]
    """The config."""
    time_us: float | None
    """Microseconds, measured or predicted as the search says; None if it failed or is not yet timed."""
    best_so_far_us: float | None
    """Least time so far."""
    predicted_us: float | None
    """Predicted microseconds on the first workload."""
    failure: str
    """Verdict, if it failed."""
    reason: str
    """Why it failed, in one line."""


@dataclass(frozen=True)
class Importance:
    """How much of the times' variance a parameter's value explains."""

    parameter: str
    """The parameter."""
    explained: float
    """From 0 to 1."""


def search_records(trace: Trace) -> list[Evaluated | Importance]:
    """The numbers of :func:`search_figure`."""
    best = trace.best_so_far()
    return [
        *(
            Evaluated(n, dict(p.config), p.time_us, best[n - 1], p.predicted_us, p.failure, p.reason)
            for n, p in enumerate(trace.points, 1)
        ),
        *(Importance(*each) for each in trace.importance().items()),
    ]


def search_figure(trace: Trace, title: str = "") -> Figure:
    """Times are labelled as measured or predicted. Parameters with one value are left out.

    Top: each evaluation in order, failures as crosses at the upper edge, and the best so far; for a measured search,
    next to it, predicted against measured times. Middle: each config that ran as a line through its values, its time on
    a log axis. Bottom: for each parameter, the most important first, times by value and their medians, and how much of
    the times' variance the value explains (:meth:`Trace.importance`).
    """
    from plotly.subplots import make_subplots

    importance = trace.importance()
    names = sorted(
        (name for name, values in trace.domains.items() if len(values) > 1), key=lambda n: -importance.get(n, -1.0)
    )
    across = min(_ACROSS, max(2, len(names)))
    rows = -(-len(names) // across)
    pairs = [p for p in trace.points if p.predicted_us is not None and p.first_us is not None]
    heights = [_PLOT_PX, *[_PLOT_PX] * bool(names), *[_SMALL_PX] * rows]
    half = across // 2
    specs = [
        [*_wide(half), *_wide(across - half)] if pairs else _wide(across),
        *[_wide(across, "domain")] * bool(names),
        *[[{} if row * across + at < len(names) else None for at in range(across)] for row in range(rows)],
    ]
    beside = ("predicted and measured, µs",) if pairs else ()
    figure = make_subplots(
        rows=len(heights), cols=across, specs=specs, row_heights=heights,
        vertical_spacing=86 / (sum(heights) + 86 * len(heights)), horizontal_spacing=0.06,
        subplot_titles=(f"{trace.kind} time by evaluation, µs", *beside,
                        *[_PARALLEL] * bool(names), *(_named(name, importance) for name in names)),
    )  # fmt: skip
    for part in _evaluations(trace):
        figure.add_trace(part, row=1, col=1)
    for part in _agreement(pairs) if pairs else ():
        figure.add_trace(part, row=1, col=half + 1)
        figure.update_xaxes(type="log" if _wide_spread(trace) else "linear", nticks=6, row=1, col=half + 1)
    if names:
        figure.add_trace(_parallel(trace, names), row=2, col=1)
    for at, name in enumerate(names):
        for part in _effect(trace, name):
            figure.add_trace(part, row=3 + at // across, col=1 + at % across)
        order = [escape(str(value)) for value in trace.domains[name]]
        figure.update_xaxes(
            type="category", categoryorder="array", categoryarray=order, row=3 + at // across, col=1 + at % across
        )
    _lay_out(figure, trace, title, sum(heights) + 100 * len(heights) + 20)
    return figure


def _named(name: str, importance: Mapping[str, float]) -> str:
    return f"{escape(name)} · explains {importance[name]:.0%}" if name in importance else escape(name)


def _wide(columns: int, kind: str = "xy") -> list[dict[str, object] | None]:
    return [{"type": kind, "colspan": columns}, *[None] * (columns - 1)]


def headline(trace: Trace) -> str:
    """One line: progress of the search, and the leading config."""
    told, *leads = _headline(trace)
    return f"{told}; {' '.join(leads)}" if leads else told


def _headline(trace: Trace) -> list[str]:
    """Progress of the search; time and config of the leader, if there is one."""
    ran = sum(p.time_us is not None for p in trace.points)
    failed = sum(bool(p.failure) for p in trace.points)
    best = trace.best
    where = f"{trace.kind} on {trace.device or 'no device'}"
    told = f"{ran} configs {where}, {failed} failed, {trace.ruled_out} ruled out"
    if best is None or not best.time_us:
        return [told]
    chosen = {n: best.config[n] for n, of in trace.domains.items() if len(of) > 1}
    return [told, f"best {microseconds(best.time_us)}{averaged(trace.workloads)}", f"by {brief(chosen)}"]


def _lay_out(figure: Figure, trace: Trace, title: str, height: int) -> None:
    note = "predictions of the emulator's model: nothing was measured" if trace.kind == "predicted" else ""
    lines = [f"<b>{escape(title or trace.what)}</b>", *map(escape, _headline(trace)), note]
    if _wide_spread(trace):
        figure.update_yaxes(type="log", nticks=6)
    figure.update_xaxes(rangemode="tozero", row=1, col=1)
    figure.update_annotations(font_size=13)
    # Places the headings above the names of the axes.
    figure.update_annotations(yshift=36, selector={"text": _PARALLEL})
    figure.update_layout(
        title_text="<br>".join(filter(None, lines)), title_font_size=14,
        title_y=1 - 16 / height, title_yanchor="top", template=theme(), height=height,
        margin={"l": 60, "r": 40, "t": 170, "b": 50}, uirevision="search", font_size=12,
        legend={"orientation": "h", "y": 1 + 32 / (height - 220), "yanchor": "bottom", "x": 0.0},
    )  # fmt: skip


def _wide_spread(trace: Trace) -> bool:
    """Whether a linear axis would compress the times."""
    times = [p.time_us for p in trace.points if p.time_us is not None]
    return bool(times) and max(times) > _SPREAD * min(times)


def _evaluations(trace: Trace) -> list[Scatter]:
    from plotly.graph_objects import Scatter

    numbered = list(enumerate(trace.points, 1))
    ran = [(n, p) for n, p in numbered if p.time_us is not None]
    first = [(n, p) for n, p in ran if p.config == trace.default]
    failed = [(n, p) for n, p in numbered if p.failure]
    edge = max((p.time_us or 0.0 for _, p in ran), default=1.0) * 1.15
    hollow = "circle-open" if trace.kind == "predicted" else "circle"
    return [
        _marks("ran", ran, hollow, BLUE, [p.time_us for _, p in ran]),
        _marks("the default", first, "diamond", ORANGE, [p.time_us for _, p in first], size=12),
        _marks("failed", failed, "x", RED, [edge] * len(failed)),
        Scatter(
            name="best so far", mode="lines", line={"shape": "hv", "color": GREY, "dash": "dot"},
            x=[n for n, _ in numbered], y=trace.best_so_far(), hoverinfo="skip",
        ),
    ]  # fmt: skip


def _marks(
    name: str, points: Sequence[tuple[int, Point]], symbol: str, colour: str, y: Sequence[float | None], size: int = 8
) -> Scatter:
    from plotly.graph_objects import Scatter

    return Scatter(
        name=name, mode="markers", marker={"symbol": symbol, "color": colour, "size": size}, x=[n for n, _ in points],
        y=list(y), customdata=[_told(p) for _, p in points],
        hovertemplate="evaluation %{x}<br>%{customdata}<extra>" + name + "</extra>",
    )  # fmt: skip


def _told(point: Point) -> str:
    """Tooltip of a point; texts from kernels and compilers are escaped."""
    lines = [f"{name} = {value}" for name, value in point.config.items()]
    if point.time_us is not None:
        lines.append(microseconds(point.time_us))
    if point.predicted_us is not None:
        lines.append(f"predicted: {microseconds(point.predicted_us)}")
    if point.failure:
        lines.append(f"{point.failure.replace('_', ' ')}: {point.reason[:160]}")
    return "<br>".join(map(escape, lines))


def _agreement(pairs: Sequence[Point]) -> list[Scatter]:
    from plotly.graph_objects import Scatter

    predicted, measured = [p.predicted_us or 0.0 for p in pairs], [p.first_us or 0.0 for p in pairs]
    ends = [min(predicted + measured), max(predicted + measured)]
    return [
        Scatter(
            name="predicted (across), measured (up)", mode="markers", showlegend=False,
            marker={"symbol": "square-open", "color": BLUE, "size": 8}, x=predicted, y=measured,
            customdata=[_told(p) for p in pairs],
            hovertemplate="predicted %{x:.3g} µs, measured %{y:.3g} µs<br>%{customdata}<extra></extra>",
        ),
        Scatter(name="equal", mode="lines", line={"color": GREY, "dash": "dash"}, x=ends, y=ends, showlegend=False,
                hoverinfo="skip"),
    ]  # fmt: skip


def _parallel(trace: Trace, names: Sequence[str]) -> Parcoords:
    from plotly.graph_objects import Parcoords

    ran = [(p.config, math.log10(p.time_us)) for p in trace.points if p.time_us]
    axes = [_axis(name, trace.domains[name], [config for config, _ in ran]) for name in names]
    logs = [log for _, log in ran]
    return Parcoords(
        line={"color": logs, "colorscale": "Viridis"},
        dimensions=[*axes, {"label": f"{trace.kind} µs", "values": logs, **_log_ticks(logs)}],
    )


def _log_ticks(logs: Sequence[float]) -> dict[str, list[float] | list[str]]:
    """Ticks of an axis of log10 times, named in microseconds: both ends and three between at equal ratios."""
    if not logs:
        return {}
    low, high = min(logs), max(logs)
    ticks = [low + (high - low) * at / 4 for at in range(5)] if high > low else [low]
    return {"tickvals": ticks, "ticktext": [f"{10**tick:.3g}" for tick in ticks]}


def _axis(name: str, values: Sequence[Scalar], configs: Sequence[Config]) -> dict[str, object]:
    """Values at equal distances, in the domain's order."""
    at = {value: index for index, value in enumerate(values)}
    return {
        "label": escape(name), "range": [0, len(values) - 1], "tickvals": list(at.values()),
        "ticktext": [escape(str(value)) for value in values], "values": [at.get(c.get(name, ""), 0) for c in configs],
    }  # fmt: skip


def _effect(trace: Trace, name: str) -> list[Scatter]:
    from plotly.graph_objects import Scatter

    ran = [p for p in trace.points if p.time_us is not None and name in p.config]
    medians = trace.medians(name)
    return [
        Scatter(
            name="configs", mode="markers", showlegend=False,
            marker={"symbol": "circle-open", "color": BLUE, "size": 6},
            x=[escape(str(p.config[name])) for p in ran], y=[p.time_us for p in ran],
            customdata=[_told(p) for p in ran], hovertemplate="%{customdata}<extra></extra>",
        ),
        Scatter(
            name="median", mode="lines+markers", showlegend=False, line={"color": ORANGE},
            marker={"symbol": "line-ew-open", "size": 16, "color": ORANGE, "line": {"width": 3}},
            x=[escape(str(v)) for v in medians], y=list(medians.values()),
            hovertemplate="%{x}: median %{y:.3g} µs<extra></extra>",
        ),
    ]  # fmt: skip


def plain_figure(figure: Figure) -> dict[str, Any]:
    """The figure as JSON values."""
    return dict(json.loads(figure.to_json()))

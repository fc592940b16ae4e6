"""The roofline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cutegen_lab.notebook.plot_theme import BLUE, GREY, ORANGE, laid_out
from cutegen_lab.profiles.records import Ceiling, RooflinePoint
from cutegen_lab.profiles.roofline import window
from cutegen_lab.views.plots.words import BYTES_COUNTED, roofline_note
from cutegen_lab.views.units import microseconds

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

_LOOK = {"compulsory": ("-open", ORANGE), "moved": ("", BLUE)}
_SHAPES = {"measured": "diamond", "predicted": "circle"}


def draw(records: Sequence[Ceiling | RooflinePoint], title: str) -> Figure:
    """Operations per second over operations per byte, both logarithmic. Each candidate has two marks at its rate: by
    compulsory bytes, and by bytes moved. A line connects the marks of each kind in the candidates' order."""
    from plotly.graph_objects import Figure

    points = [record for record in records if isinstance(record, RooflinePoint)]
    ceilings = [record for record in records if isinstance(record, Ceiling)]
    rates = [c.operations_per_s for c in ceilings if c.operations_per_s]
    (low, high), (floor, top) = window(records)
    figure = Figure([*(_ceiling(c, low, high, max(rates)) for c in ceilings)])
    for name in _LOOK:
        figure.add_trace(_trail([p for p in points if p.bytes_counted == name], name))
    figure.update_xaxes(type="log", title_text="operations per byte", exponentformat="power", dtick=1)
    figure.update_yaxes(type="log", title_text="operations per second", exponentformat="power", dtick=1)
    figure.update_yaxes(range=_log(floor, top))
    figure.update_xaxes(range=_log(low, high))
    what = title.rpartition(" ")[0] or title  # the title covers all candidates
    return laid_out(figure, f"Roofline of {what}", roofline_note(points), rows=15)


def _log(low: float, high: float) -> list[float]:
    return [math.log10(low), math.log10(high)]


def _ceiling(ceiling: Ceiling, low: float, high: float, most: float) -> Scatter:
    from plotly.graph_objects import Scatter

    rate, width = ceiling.operations_per_s, ceiling.bytes_per_s
    if width is not None:
        model = "model" in ceiling.name
        ridge = most / width
        x = [low, ridge * 0.3 if model else ridge * 0.5, ridge]  # so that the labels of the two lines do not overlap
        y, where, at = [width * value for value in x], "top left" if model else "bottom right", 1
        dash = "dash" if model else "solid"
    else:
        assert rate is not None
        x, y, where, at = [low, high], [rate, rate], "top left", 1
        dash = "solid" if rate == most else "dot"
    text = [""] * len(x)
    text[at] = ceiling.name
    return Scatter(
        name=ceiling.name, mode="lines+text", x=x, y=y, text=text, textposition=where, showlegend=False,
        line={"color": GREY, "dash": dash, "width": 1.5}, textfont={"color": GREY, "size": 11}, hoverinfo="name",
    )  # fmt: skip


def _trail(points: Sequence[RooflinePoint], name: str) -> Scatter:
    from plotly.graph_objects import Scatter

    suffix, colour = _LOOK[name]
    return Scatter(
        name=BYTES_COUNTED[name], mode="lines+markers+text",
        x=[p.intensity for p in points], y=[p.operations_per_s for p in points],
        text=[p.candidate for p in points], textposition="bottom center" if name == "moved" else "top center",
        line={"color": colour, "width": 1, "dash": "dot"}, textfont={"color": colour},
        marker={"symbol": [_SHAPES[p.basis] + suffix for p in points], "size": 10 if name == "moved" else 15,
                "color": colour, "line": {"width": 2, "color": colour}},
        customdata=[f"{p.candidate}: {microseconds(p.time_us)} {p.basis}" for p in points],
        hovertemplate="%{customdata}<br>%{x:.3g} operations per byte<br>%{y:.3s} operations per second<extra></extra>",
    )  # fmt: skip

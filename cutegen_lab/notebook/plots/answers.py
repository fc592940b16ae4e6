"""Plots as answers to a view's queries."""

from __future__ import annotations

import math
import re
from dataclasses import asdict
from html import unescape
from itertools import groupby
from typing import Any

from cutegen_lab.notebook.plots.plot import Plot
from cutegen_lab.notebook.plots.table import PLOTS, Subject, draw
from cutegen_lab.notebook.search_figure import plain_figure
from cutegen_lab.views.profile import FigureView, PlotEntry, PlotList, PlotTable, PlotView

_MOST_ROWS = 200


def plot_list(of: Subject) -> PlotList:
    """Which plots there are of a candidate; none is drawn."""
    plots = [PlotEntry(name=name, help=spec.help, missing=spec.missing(of)) for name, spec in PLOTS.items()]
    return PlotList(candidate_id=of.candidate, plots=plots)


def plot_view(of: Subject, name: str) -> PlotView:
    """The plot ``name`` of a candidate. Raises InputError, SetupError."""
    plot = draw(name, of)
    found = plain_figure(plot.figure)
    title = found["layout"]["title"]["text"].partition("<br>")[0]
    return PlotView(
        candidate_id=of.candidate, name=name, title=unescape(re.sub(r"</?b>", "", title)),
        figure=FigureView(data=found["data"], layout=found["layout"]), tables=_tables(plot), csv=plot.csv,
    )  # fmt: skip


def _tables(plot: Plot) -> list[PlotTable]:
    """A table for each kind of record."""
    found = []
    for kind, group in groupby(plot.flat, key=type):
        records = list(group)
        rows = [list(asdict(record).items()) for record in records[:_MOST_ROWS]]
        found.append(
            PlotTable(
                title=(kind.__doc__ or kind.__name__).partition("\n")[0].rstrip("."), count=len(records),
                columns=[name.replace("_", " ") for name, _ in rows[0]],
                rows=[[_cell(value) for _, value in row] for row in rows],
            )
        )  # fmt: skip
    return found


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            whole = math.isfinite(value) and value == int(value)
            return f"{value:,.0f}" if whole else f"{value:.4g}"
    return str(value)

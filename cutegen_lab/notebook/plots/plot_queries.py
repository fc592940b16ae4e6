"""Plots as answers to a view's queries."""

from __future__ import annotations

import re
from html import unescape

from cutegen_lab.notebook.plots.catalogue import PLOTS, Subject, draw
from cutegen_lab.notebook.search_figure import plain_figure
from cutegen_lab.views.profile import FigureView, PlotEntry, PlotList, PlotView, tables_of


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
        figure=FigureView(data=found["data"], layout=found["layout"]), tables=tables_of(plot.flat), csv=plot.csv,
        trace=plot.trace,
    )  # fmt: skip

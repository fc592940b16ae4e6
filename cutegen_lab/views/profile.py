"""The plots of a candidate in the widget, as answers to queries."""

from __future__ import annotations

from typing import Any

from cutegen_lab.views.model import View


class PlotEntry(View):
    """A plot that may be asked for. ``missing``: why there is none of this candidate and what to do, else empty."""

    name: str
    help: str
    missing: str


class PlotList(View):
    """All plots."""

    candidate_id: str
    plots: list[PlotEntry]


class FigureView(View):
    """A figure as plotly's JSON."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]


class PlotTable(View):
    """The numbers of one kind that a plot shows, as text: the first rows, and how many there are in all."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    count: int


class PlotView(View):
    """A plot, its tables, and all of their numbers as CSV."""

    candidate_id: str
    name: str
    title: str
    figure: FigureView
    tables: list[PlotTable]
    csv: str

"""The plots of a candidate in the widget, as answers to queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from cutegen_lab.views.model import View

_MOST_ROWS = 200


class PlotEntry(View):
    """A plot that may be asked for. ``missing``: why this candidate has no such plot and what to do, otherwise
    empty."""

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
    """A plot, its tables, and all numbers of these as CSV. ``trace``: a timeline as JSON for Perfetto, else ""."""

    candidate_id: str
    name: str
    title: str
    figure: FigureView
    tables: list[PlotTable]
    csv: str
    trace: str


def whole_table(title: str, columns: list[str], rows: list[list[str]]) -> PlotTable:
    """A table with all of its rows."""
    return PlotTable(title=title, columns=columns, rows=rows, count=len(rows))


def tables_of(records: Sequence[Any]) -> list[PlotTable]:
    """A table for each kind of record (dataclasses)."""
    found = []
    for kind, group in groupby(records, key=type):
        mine = list(group)
        rows = [list(asdict(record).items()) for record in mine[:_MOST_ROWS]]
        found.append(
            PlotTable(
                title=(kind.__doc__ or kind.__name__).partition("\n")[0].rstrip("."), count=len(mine),
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

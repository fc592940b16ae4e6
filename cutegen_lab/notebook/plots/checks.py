"""The check matrix: errors divided by their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cutegen_lab.notebook.plot_theme import laid_out
from cutegen_lab.profiles.records import CheckCell
from cutegen_lab.views.plots.words import cell_text, cell_told, checks_note

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_SCALE = [[0.0, "#3b7dd8"], [0.5, "#3b7dd8"], [0.5, "#d9453c"], [1.0, "#d9453c"]]


def draw(records: Sequence[CheckCell], title: str) -> Figure:
    """A cell for each workload and kind of inputs: the largest error as a share of what is allowed, and a cross where a
    check failed. Empty cells were not checked."""
    from plotly.graph_objects import Figure, Heatmap

    workloads = list(dict.fromkeys(r.workload for r in records))
    draws = list(dict.fromkeys(r.draw for r in records))
    by = {(r.workload, r.draw): r for r in records}
    cells = [[by.get((workload, draw)) for workload in workloads] for draw in draws]
    figure = Figure(
        Heatmap(
            x=workloads, y=draws, z=[[_level(c) for c in row] for row in cells],
            text=[[cell_text(c) for c in row] for row in cells], texttemplate="%{text}",
            textfont={"color": "white", "size": 11}, customdata=[[cell_told(c) for c in row] for row in cells],
            hovertemplate="%{x}, %{y}: %{customdata}<extra></extra>",
            colorscale=_SCALE, zmin=0, zmax=2, showscale=False, xgap=2, ygap=2, hoverongaps=False,
        )
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_xaxes(side="top", showgrid=False)
    return laid_out(figure, f"Checks of {title}", checks_note(records), rows=math.ceil(0.8 * len(draws)), top=14)


def _level(cell: CheckCell | None) -> float | None:
    """0.5 for a pass, 1.5 for a failure, None for what was not checked."""
    return None if cell is None else 1.5 if cell.failed else 0.5

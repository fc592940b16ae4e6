"""Occupancy: what limits the resident warps, and their number if the kernel took more or less of a resource."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cutegen_lab.notebook.plot_theme import BLUE, ORANGE, laid_out
from cutegen_lab.profiles.records import Limit, WhatIf
from cutegen_lab.views.plots.words import limited_by, resource_name
from cutegen_lab.views.units import size

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_RESOURCES = ("registers per thread", "shared memory per block")


def draw(records: Sequence[Limit | WhatIf], title: str) -> Figure:
    """For each kernel a row of three plots: resident warps over registers, over shared memory, and the blocks that each
    resource allows. A mark shows what the kernel takes."""
    from plotly.subplots import make_subplots

    kernels = list(dict.fromkeys(record.kernel for record in records))
    names = [f"{what}{f', {kernel}' if len(kernels) > 1 else ''}" for kernel in kernels
             for what in ("by registers per thread", "by shared memory per block", "blocks allowed by")]  # fmt: skip
    figure = make_subplots(rows=len(kernels), cols=3, subplot_titles=names, column_widths=[0.36, 0.36, 0.28],
                            horizontal_spacing=0.12)  # fmt: skip
    for row, kernel in enumerate(kernels, 1):
        for column, resource in enumerate(_RESOURCES, 1):
            mine = [r for r in records if isinstance(r, WhatIf) and r.kernel == kernel]
            _sweep(figure, [r for r in mine if r.resource == resource], row, column)
        _limits(figure, [r for r in records if isinstance(r, Limit) and r.kernel == kernel], row)
        figure.update_yaxes(title_text="warps per multiprocessor", row=row, col=1)
    figure.update_annotations(font_size=12)
    figure.update_xaxes(title_text="registers", col=1)
    figure.update_xaxes(title_text="KiB", col=2)
    figure.update_xaxes(title_text="blocks", type="log", col=3)
    figure.update_yaxes(rangemode="tozero", col=1)
    figure.update_yaxes(rangemode="tozero", col=2)
    note = limited_by([record for record in records if isinstance(record, Limit)])
    return laid_out(figure, f"Occupancy of {title}", note, rows=10 * len(kernels))


def _sweep(figure: Figure, points: Sequence[WhatIf], row: int, column: int) -> None:
    from plotly.graph_objects import Scatter

    scale = 1 if column == 1 else 1024
    said = [f"{p.value} registers" if column == 1 else size(p.value) for p in points]
    told = [f"{text}: {p.resident_warps} warps" for text, p in zip(said, points, strict=True)]
    figure.add_trace(
        Scatter(
            name="what if", mode="lines", line={"shape": "hv", "color": BLUE}, showlegend=row == column == 1,
            x=[p.value / scale for p in points], y=[p.resident_warps for p in points], customdata=told,
            hovertemplate="%{customdata}<extra></extra>",
        ),
        row=row, col=column,
    )  # fmt: skip
    now = next(p for p in points if p.current)
    left = now.value > max(p.value for p in points) / 2
    figure.add_trace(
        Scatter(
            name="this kernel", mode="markers+text", x=[now.value / scale], y=[now.resident_warps],
            showlegend=row == column == 1,
            marker={"symbol": "diamond", "size": 12, "color": ORANGE}, textfont_color=ORANGE,
            textposition="bottom left" if left else "top right", text=[f"{now.resident_warps} warps"],
            hovertemplate=f"now, {said[points.index(now)]}: %{{y}} warps<extra></extra>",
        ),
        row=row, col=column,
    )  # fmt: skip


def _limits(figure: Figure, limits: Sequence[Limit], row: int) -> None:
    from plotly.graph_objects import Bar

    names = [resource_name(limit) for limit in limits]
    figure.add_trace(
        Bar(
            orientation="h", name="blocks", showlegend=False, y=names, x=[limit.blocks for limit in limits],
            text=[str(limit.blocks) for limit in limits], textposition="auto",
            marker_color=[ORANGE if limit.limits else BLUE for limit in limits],
            hovertemplate="%{y}: %{x} blocks per multiprocessor<extra></extra>",
        ),
        row=row, col=3,
    )  # fmt: skip

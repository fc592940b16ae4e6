"""Error and time of each candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cutegen_lab.views.model import RunView, TrendPoint
from cutegen_lab.views.plots.picture import WIDTH, LogAxis, Picture, mark, path, svg, text
from cutegen_lab.views.profile import PlotTable, whole_table
from cutegen_lab.views.units import microseconds, relative, significant

HEIGHT = 180
LEFT, RIGHT, TOP, BOTTOM = 74, 14, 12, 30


@dataclass(frozen=True)
class Mark:
    """One point: column, value, shape ("dot": solid, "ring": hollow) and tooltip."""

    column: int
    value: float
    shape: str
    label: str


def error_plot(view: RunView) -> Picture | None:
    """Each candidate's error against fp64 (dots), and PyTorch's at the same precision (rings)."""
    marks = []
    for column, point in enumerate(view.trend):
        if point.error:
            words = f"{point.candidate_id}: error {relative(point.error)}, {point.verdict.replace('_', ' ')}"
            marks.append(Mark(column, point.error, "dot", words))
        if point.torch_error:
            marks.append(Mark(column, point.torch_error, "ring", f"PyTorch: {relative(point.torch_error)}"))
    rows = [
        [p.candidate_id, p.verdict.replace("_", " "), *(relative(e) if e else "" for e in (p.error, p.torch_error))]
        for p in view.trend
    ]
    table = whole_table("Error against fp64", ["candidate", "verdict", "kernel", "PyTorch"], rows)
    return _plot(view.trend, marks, None, relative, "Error against fp64: kernel (dot), PyTorch (ring)", table)


def time_plot(view: RunView) -> Picture | None:
    """Each candidate's time (measured: dots, predicted: rings), with the speed of light as a line."""
    marks = [
        Mark(
            column,
            point.time_us,
            "dot" if point.basis == "measured" else "ring",
            f"{point.candidate_id}: {microseconds(point.time_us)} {point.basis}",
        )
        for column, point in enumerate(view.trend)
        if point.time_us
    ]
    rows = [
        [p.candidate_id, microseconds(p.time_us) if p.time_us else "", p.basis,
         f"{significant(p.sol_gap)}×" if p.sol_gap else ""]
        for p in view.trend
    ]  # fmt: skip
    table = whole_table("Time", ["candidate", "time", "basis", "over the speed of light"], rows)
    title = "Time: measured (dot), predicted (ring), speed of light (line)"
    return _plot(view.trend, marks, view.sol.time_us, microseconds, title, table)


def _plot(
    trend: Sequence[TrendPoint], marks: list[Mark], bound: float | None, say: Callable[[float], str], title: str,
    table: PlotTable,
) -> Picture | None:  # fmt: skip
    if not marks:
        return None
    values = [m.value for m in marks] + ([bound] if bound else [])
    room = max(1.12, (max(values) / min(values)) ** 0.1)
    axis = LogAxis(min(values) / room, max(values) * room, HEIGHT - BOTTOM, TOP)
    right = WIDTH - RIGHT
    parts = [path(f"M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{right}", "cg-axis")]
    for tick in axis.ticks:
        parts.append(path(f"M{LEFT} {axis.at(tick):.1f}H{right}", "cg-grid"))
        parts.append(text(LEFT - 6, axis.at(tick) + 4, say(tick), "end"))
    if bound:
        parts.append(path(f"M{LEFT} {axis.at(bound):.1f}H{right}", "cg-bound"))
        parts.append(text(right, axis.at(bound) - 4, f"speed of light {say(bound)}", "end"))
    at = [LEFT + (right - LEFT) * (column + 0.5) / len(trend) for column in range(len(trend))]
    every = -(-len(trend) // 16)  # labels of more candidates would overlap
    parts += [
        text(at[column], HEIGHT - BOTTOM + 16, point.candidate_id, "middle")
        for column, point in enumerate(trend) if column % every == 0
    ]  # fmt: skip
    parts += [mark(m.shape, at[m.column], axis.at(m.value), m.label) for m in marks]
    return Picture(title, svg(title, HEIGHT, parts), [table])

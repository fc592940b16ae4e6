"""Two small SVG plots rendered in Python: error and time of each candidate. No script, no library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from cutegen_lab.views.model import RunView, TrendPoint
from cutegen_lab.views.units import microseconds, relative

WIDTH, HEIGHT = 520, 180
LEFT, RIGHT, TOP, BOTTOM = 74, 14, 12, 30


@dataclass(frozen=True)
class Mark:
    """One point: column, value, shape ("dot": solid, "ring": hollow) and tooltip."""

    column: int
    value: float
    shape: str
    label: str


def error_plot(view: RunView) -> Markup:
    """Each candidate's error against fp64 (dots), and PyTorch's at the same precision (rings)."""
    marks = []
    for column, point in enumerate(view.trend):
        if point.error:
            words = f"{point.candidate_id}: error {relative(point.error)}, {point.verdict.replace('_', ' ')}"
            marks.append(Mark(column, point.error, "dot", words))
        if point.torch_error:
            marks.append(Mark(column, point.torch_error, "ring", f"PyTorch: {relative(point.torch_error)}"))
    return _plot(
        view.trend, marks, None, "relative error", relative, "Error against fp64: kernel (dot), PyTorch (ring)"
    )


def time_plot(view: RunView) -> Markup:
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
    title = "Time: measured (dot), predicted (ring), speed of light (line)"
    return _plot(view.trend, marks, view.sol.time_us, "time", microseconds, title)


def _plot(
    trend: Sequence[TrendPoint], marks: list[Mark], bound: float | None, axis: str, show: object, title: str
) -> Markup:
    if not marks:
        return Markup("")
    say = show if callable(show) else str
    values = [m.value for m in marks] + ([bound] if bound else [])
    low, high = math.log10(min(values)), math.log10(max(values))
    pad = max(0.05, 0.1 * (high - low))
    low, high = low - pad, high + pad

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(value)) / (high - low)

    def x(column: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (column + 0.5) / len(trend)

    parts = [
        f'<svg class="cg-plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f'<path class="cg-axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>',
    ]
    for tick in _ticks(low, high):
        parts.append(f'<path class="cg-grid" d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{escape(say(tick))}</text>')
    if bound:
        parts.append(f'<path class="cg-bound" d="M{LEFT} {y(bound):.1f}H{WIDTH - RIGHT}"/>')
        words = f"speed of light {say(bound)}"
        parts.append(f'<text x="{WIDTH - RIGHT}" y="{y(bound) - 4:.1f}" text-anchor="end">{escape(words)}</text>')
    for column, point in enumerate(trend):
        where = f'x="{x(column):.1f}" y="{HEIGHT - BOTTOM + 16}"'
        parts.append(f'<text {where} text-anchor="middle">{escape(point.candidate_id)}</text>')
    for mark in marks:
        place = f'cx="{x(mark.column):.1f}" cy="{y(mark.value):.1f}" r="4.5"'
        parts.append(f'<circle class="cg-{mark.shape}" {place}><title>{escape(mark.label)}</title></circle>')
    parts.append(f'<text class="cg-axis-label" x="6" y="{TOP + 4}">{escape(axis)}</text></svg>')
    return Markup("".join(parts))  # noqa: S704 - every text above went through escape()


def _ticks(low: float, high: float) -> list[float]:
    """At least two ticks: decades inside the range, or 1-2-5 steps if it spans fewer than two decades."""
    decades = [10.0**e for e in range(math.ceil(low), math.floor(high) + 1)]
    if len(decades) >= 2:
        return decades[:: max(1, len(decades) // 5)]
    steps = [m * 10.0**e for e in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5)]
    inside = [s for s in steps if low <= math.log10(s) <= high]
    return inside if len(inside) >= 2 else [10.0 ** (low + (high - low) * part) for part in (0.15, 0.85)]

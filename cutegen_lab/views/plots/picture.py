"""A plot as SVG, and the pieces that it is made of. Every text is escaped; colours are classes of the page's style."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from cutegen_lab.views.profile import PlotTable

WIDTH = 520
CHARACTER = 6.2
"""Approximate width of a character of a label, in pixels."""
_LINE = 12
Spot = tuple[float, float]
"""Pixels from the left and the top."""


@dataclass(frozen=True)
class Picture:
    """A plot on a page."""

    title: str
    """What it shows: caption and accessible name."""
    svg: Markup
    """The drawing."""
    tables: Sequence[PlotTable]
    """Its numbers."""
    note: str = ""
    """What a reader must know besides: shown below the drawing."""


def drawable(*values: float) -> bool:
    """Whether all values can be placed on a logarithmic axis."""
    return all(value > 0 and math.isfinite(value) for value in values)


def svg(title: str, height: float, parts: Iterable[Markup]) -> Markup:
    """The drawing of ``parts``, named ``title``."""
    head = Markup('<svg class="cg-plot" viewBox="0 0 {} {:.0f}" role="img" aria-label="{}">')
    return head.format(WIDTH, height, title) + Markup("").join(parts) + Markup("</svg>")


def text(x: float, y: float, words: str, anchor: str = "", kind: str = "") -> Markup:
    """``words``, which begin at ``x`` or, by ``anchor``, have their middle or end there."""
    where = Markup(' text-anchor="{}"').format(anchor) if anchor else ""
    return Markup('<text{}{} x="{:.1f}" y="{:.1f}">{}</text>').format(_class(kind), where, x, y, words)


def path(drawn: str, kind: str) -> Markup:
    return Markup('<path{} d="{}"/>').format(_class(kind), drawn)


def mark(shape: str, x: float, y: float, told: str, kind: str = "", radius: float = 4.5) -> Markup:
    """A mark with a tooltip. ``shape``: "dot" or "ring" for what is measured or predicted, "square" for a failure."""
    named = _class(f"cg-{shape} {kind}".strip())
    if shape == "square":
        square = Markup('<rect{} x="{:.1f}" y="{:.1f}" width="{:g}" height="{:g}" rx="1.5"><title>{}</title></rect>')
        return square.format(named, x - radius, y - radius, 2 * radius, 2 * radius, told)
    circle = Markup('<circle{} cx="{:.1f}" cy="{:.1f}" r="{:g}"><title>{}</title></circle>')
    return circle.format(named, x, y, radius, told)


def bar(x: float, y: float, width: float, height: float, told: str, kind: str = "cg-dot") -> Markup:
    """A bar with a tooltip."""
    drawn = Markup('<rect{} x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>')
    return drawn.format(_class(kind), x, y, max(width, 0.5), height, told)


def apart(labels: Sequence[Spot], marks: Sequence[Spot]) -> list[Spot]:
    """Places of labels of about two characters, each moved down until it overlaps no mark and no earlier label."""
    taken = list(marks)
    for x, y in labels:
        while any(abs(x - x0) < 3 * CHARACTER and abs(y - y0) < _LINE - 1 for x0, y0 in taken):
            y += _LINE / 2
        taken.append((x, y))
    return taken[len(marks) :]


def clearest(spots: Sequence[Spot], marks: Sequence[Spot]) -> Spot:
    """The spot that is farthest from the nearest of ``marks``."""
    return max(spots, key=lambda spot: min(math.dist(spot, mark) for mark in marks))


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis from ``low`` at pixel ``start`` to ``high`` at ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = math.log10(value / self.low) / math.log10(self.high / self.low)
        return self.start + (self.end - self.start) * share

    @property
    def ticks(self) -> list[float]:
        """At least two round numbers: decades inside the range, or finer steps if it spans fewer than two."""
        low, high = math.log10(self.low), math.log10(self.high)
        powers = range(math.floor(low), math.ceil(high) + 1)
        for steps in ((1.0,), (1.0, 2.0, 5.0), tuple(map(float, range(1, 10))), tuple(n / 10 for n in range(10, 100))):
            inside = [value for e in powers for m in steps if self.low <= (value := m * 10.0**e) <= self.high]
            if len(inside) >= 2:
                return inside[:: -(-len(inside) // 6)]
        return [10.0 ** (low + (high - low) * part) for part in (0.15, 0.85)]


def _class(kind: str) -> Markup:
    return Markup(' class="{}"').format(kind) if kind else Markup("")

"""The roofline of a run's candidates."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from cutegen_lab.profiles.records import Ceiling, RooflinePoint
from cutegen_lab.profiles.roofline import window
from cutegen_lab.views.plots.picture import (
    CHARACTER,
    WIDTH,
    LogAxis,
    Picture,
    Spot,
    apart,
    clearest,
    drawable,
    mark,
    path,
    svg,
    text,
)
from cutegen_lab.views.plots.words import BYTES_COUNTED, roofline_note
from cutegen_lab.views.profile import tables_of
from cutegen_lab.views.units import microseconds, prefixed, significant

_HEIGHT = 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 22, 40
_KINDS = {"compulsory": "cg-least", "moved": ""}
_RADII = {"compulsory": 7.0, "moved": 4.5}
_TITLE = "Roofline: operations per second over operations per byte"


def roofline_plot(records: Sequence[Ceiling | RooflinePoint]) -> Picture | None:
    """Each candidate has two marks at its rate; a line goes through the candidates in their order."""
    points = [r for r in records if isinstance(r, RooflinePoint) and drawable(r.intensity, r.operations_per_s)]
    ceilings = [record for record in records if isinstance(record, Ceiling)]
    if not points:
        return None
    (low, high), (floor, top) = window([*ceilings, *points])
    x = LogAxis(low, high, _LEFT, WIDTH - _RIGHT)
    y = LogAxis(floor, top, _HEIGHT - _BOTTOM, _TOP)
    parts = [path(f"M{_LEFT} {_TOP}V{_HEIGHT - _BOTTOM}H{WIDTH - _RIGHT}", "cg-axis")]
    for tick in x.ticks:
        parts.append(path(f"M{x.at(tick):.1f} {_TOP}V{_HEIGHT - _BOTTOM}", "cg-grid"))
        parts.append(text(x.at(tick), _HEIGHT - _BOTTOM + 16, prefixed(tick), "middle"))
    for tick in y.ticks:
        parts.append(path(f"M{_LEFT} {y.at(tick):.1f}H{WIDTH - _RIGHT}", "cg-grid"))
        parts.append(text(_LEFT - 6, y.at(tick) + 4, prefixed(tick), "end"))
    parts.append(text((_LEFT + WIDTH - _RIGHT) / 2, _HEIGHT - 6, "operations per byte", "middle"))
    parts.append(text(4, 12, "operations per second"))
    marks = [(x.at(p.intensity), y.at(p.operations_per_s)) for p in points]
    for ceiling in ceilings:
        parts += _ceiling(ceiling, x, y, max(c.operations_per_s or 0.0 for c in ceilings), marks)
    right = float(WIDTH - _RIGHT)
    for counted, words in BYTES_COUNTED.items():
        parts += _trail([p for p in points if p.bytes_counted == counted], counted, x, y)
        parts.append(text(right, 12, words, "end"))
        parts.append(mark("ring", right - CHARACTER * len(words) - 8, 8, words, _KINDS[counted], _RADII[counted]))
        right -= CHARACTER * len(words) + 28
    return Picture(_TITLE, svg(_TITLE, _HEIGHT, parts), tables_of(records), roofline_note(points))


def _ceiling(ceiling: Ceiling, x: LogAxis, y: LogAxis, most: float, marks: Sequence[Spot]) -> list[Markup]:
    """A line, cut where the plot ends, with its name along it, away from ``marks``."""
    if ceiling.operations_per_s is not None:
        at, width = y.at(ceiling.operations_per_s), CHARACTER * len(ceiling.name)
        middles = [(x.start + width / 2 + 4, at), (x.end - width / 2, at)]
        middle, _ = clearest(middles[::-1], marks)
        return [path(f"M{x.start} {at:.1f}H{x.end}", "cg-ceiling"), text(middle, at - 4, ceiling.name, "middle")]
    width = ceiling.bytes_per_s or 0.0
    first, last = max(x.low, y.low / width), min(x.high, most / width)
    (x0, y0), (x1, y1) = ((x.at(value), y.at(value * width)) for value in (first, last))
    model = "model" in ceiling.name
    parts = [path(f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}", "cg-ceiling cg-modelled" if model else "cg-ceiling")]
    # Side of the line on which its label stands: opposite sides for modelled and other ceilings, so that labels do not
    # collide.
    side = -1 if model else 1
    half = CHARACTER * len(ceiling.name) / 2 + 8
    shares = (0.85, 0.7, 0.55, 0.4, 0.25)
    spots = [(x0 + (x1 - x0) * share + side * half, y0 + (y1 - y0) * share + 4) for share in shares]
    inside = [(px, py) for px, py in spots if x.start + half < px < x.end - half]
    return [*parts, text(*clearest(inside or spots[:1], marks), ceiling.name, "middle")]


def _trail(points: Sequence[RooflinePoint], counted: str, x: LogAxis, y: LogAxis) -> list[Markup]:
    at = [(x.at(p.intensity), y.at(p.operations_per_s)) for p in points]
    kind = _KINDS[counted]
    parts = [path("M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in at), f"cg-trail {kind}".strip())] if at else []
    for (px, py), point in zip(at, points, strict=True):
        time = f"{microseconds(point.time_us)} {point.basis}"
        told = f"{point.candidate}: {time}, {significant(point.intensity)} operations per byte"
        parts.append(mark("dot" if point.basis == "measured" else "ring", px, py, told, kind, _RADII[counted]))
    side = 20 if kind else -20
    labels = apart([(px + side, py) for px, py in at], at)
    named = zip(labels, points, strict=True)
    return [*parts, *(text(px, py + 4, point.candidate, "middle", "cg-name") for (px, py), point in named)]

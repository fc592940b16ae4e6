"""Profiles as a plotly figure: counters of emulator and GPU side by side, and the most expensive lines."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from cutegen_lab.core.counters import COUNTERS
from cutegen_lab.core.hot_lines import hottest, limiting
from cutegen_lab.core.trial import Profile
from cutegen_lab.notebook.plot_theme import BLUE, ORANGE, theme

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure, Scatter

LINES = 8
_TITLE = 100  # maximum length of a line of the title
_CODE = 52  # maximum length of a source line next to its bar
_SHOWN = (  # counters to compare, in reading order
    "warp_instructions", "tensor_instructions", "global_load_sectors", "global_store_sectors", "global_atomic_sectors",
    "bulk_load_sectors", "bulk_store_sectors", "shared_wavefronts", "shared_conflicts", "barrier_waits",
    "mbarrier_waits", "cluster_requests", "dram_load_bytes", "dram_store_bytes",
)  # fmt: skip
_SUMS = {  # counter -> its parts, which are added if a source counts only these
    "shared_wavefronts": ("shared_load_wavefronts", "shared_store_wavefronts", "shared_copy_wavefronts"),
    "shared_conflicts": ("shared_load_conflicts", "shared_store_conflicts"),
}
_MARKS = {"emulator": ("circle", BLUE), "hardware": ("diamond-open", ORANGE)}


@dataclass(frozen=True)
class Counted:
    """A counter of a whole launch."""

    source: str
    """Who counted: emulator or hardware."""
    counter: str
    """Its name."""
    value: float
    """Its value."""
    unit: str
    """Its unit."""
    meaning: str
    """What it counts, in words."""


@dataclass(frozen=True)
class LineShare:
    """A line that takes much of the resource that limits the kernel."""

    source: str
    """Who counted: emulator or hardware."""
    line: int
    """Line of the candidate's text, from 1."""
    share: float
    """The line's use of this resource divided by the use of all lines, 0 to 1."""
    told: str
    """The share as a phrase, with the cost of an access."""


def profile_records(profiles: Sequence[Profile]) -> list[Counted | LineShare]:
    """The numbers of :func:`profile_figure`. Counters that are zero in all profiles are left out."""
    return [*(mark for p in profiles for mark in _counted(p, profiles)), *(s for p in profiles for s in _shares(p))]


def _counted(profile: Profile, beside: Sequence[Profile]) -> list[Counted]:
    names = [name for name in _SHOWN if any(_value(p, name) > 0 for p in beside)]
    return [Counted(profile.source, name, _value(profile, name), *COUNTERS[name]) for name in names]


def _shares(profile: Profile) -> list[LineShare]:
    counter, _ = limiting(profile)
    by_line: Mapping[int, float] = {entry.line: entry.counters.get(counter, 0.0) for entry in profile.lines}
    total = sum(value for line, value in by_line.items() if line > 0)
    return [LineShare(profile.source, h.line, by_line[h.line] / total, str(h)) for h in hottest(profile, LINES)]


def profile_figure(profiles: Sequence[Profile], source: str, title: str = "") -> Figure:
    """Counters of each profile on one logarithmic axis; below them the most expensive lines of the candidate.

    ``source``: text of the candidate. Counters that are zero in all profiles are left out; lines come from profiles
    that have them. Raises ValueError without a profile.
    """
    if not profiles:
        raise ValueError("no profile to show")
    from plotly.subplots import make_subplots

    counted = [_counted(p, profiles) for p in profiles]
    lines = [_shares(p) for p in profiles]
    names, most = len(counted[0]), max(map(len, lines))
    figure = make_subplots(
        rows=2, row_heights=[names + 1, most + 1], vertical_spacing=0.16,
        subplot_titles=("counters of the whole launch", _lines_title(profiles)),
    )  # fmt: skip
    for profile, marks, shares in zip(profiles, counted, lines, strict=True):
        figure.add_trace(_counters(profile.source, marks), row=1, col=1)
        if shares:
            figure.add_trace(_lines(profile.source, shares, source), row=2, col=1)
    figure.update_xaxes(type="log", row=1, col=1)
    figure.update_xaxes(ticksuffix="%", rangemode="tozero", row=2, col=1)
    figure.update_yaxes(autorange="reversed")
    figure.update_yaxes(tickfont_family="monospace", row=2, col=1)
    figure.update_annotations(x=0, xanchor="left")
    limiters = (f"{profile.source}: {profile.limiter}" for profile in profiles if profile.limiter)
    heading = [line for text in (title, *limiters) for line in textwrap.wrap(text, _TITLE)]
    above = 40 + 18 * len(heading)
    figure.update_layout(
        title={"text": "<br>".join(map(escape, heading)), "font_size": 14, "yref": "container", "y": 1,
               "yanchor": "top", "pad_t": 12},
        barmode="group", template=theme(),
        height=160 + above + 26 * (names + most), margin={"l": 10, "r": 10, "t": above, "b": 50},
        legend={"orientation": "h", "y": -0.1, "yanchor": "top"},
    )  # fmt: skip
    return figure


def _value(profile: Profile, name: str) -> float:
    if name in profile.counters:
        return profile.counters[name]
    return sum(profile.counters.get(part, 0.0) for part in _SUMS.get(name, ()))


def _counters(source: str, marks: Sequence[Counted]) -> Scatter:
    from plotly.graph_objects import Scatter

    symbol, colour = _MARKS[source]
    return Scatter(
        mode="markers", name=source, legendgroup=source, marker={"symbol": symbol, "size": 11, "color": colour},
        x=[mark.value or None for mark in marks], y=[mark.counter.replace("_", " ") for mark in marks],
        customdata=[f"{mark.value:,.0f} {mark.unit}<br>{escape(mark.meaning)}" for mark in marks],
        hovertemplate="%{y}<br>%{customdata}<extra>" + source + "</extra>",
    )  # fmt: skip


def _lines(source: str, shares: Sequence[LineShare], text: str) -> Bar:
    from plotly.graph_objects import Bar

    return Bar(
        orientation="h", name=source, legendgroup=source, marker_color=_MARKS[source][1], showlegend=False,
        x=[100 * each.share for each in shares], y=[_label(each.line, text.splitlines()) for each in shares],
        customdata=[escape(each.told) for each in shares],
        hovertemplate="%{customdata}<extra>" + source + "</extra>",
    )  # fmt: skip


def _label(line: int, text: Sequence[str]) -> str:
    code = text[line - 1].strip() if line <= len(text) else ""
    return escape(f"{line}  {textwrap.shorten(code, _CODE, placeholder='…')}")


def _lines_title(profiles: Sequence[Profile]) -> str:
    named = next((name for _, name in map(limiting, profiles) if name), "")
    return f"lines, by share of {named}" if named else "no counts by line"

"""Plots of horizontal bars: terms of the time, memory, instruction mix, stalls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cutegen_lab.notebook.plot_theme import BLUE, GREY, HUES, ORANGE, PATTERNS, RED, laid_out
from cutegen_lab.profiles import plot_data
from cutegen_lab.profiles.records import MemoryBar, MixShare, Registers, Stall, TermBar, WholeTime
from cutegen_lab.profiles.row import Row
from cutegen_lab.views.plots.words import level_name, memory_notes, moved_text
from cutegen_lab.views.units import count, microseconds

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure

_MIB = 1 << 20
_LEAST_STALL = 0.005  # minimum share that is drawn; smaller ones are only in the table
_DASHES = {"speed of light": "dot", "predicted": "dash", "measured": "solid"}


def pick_terms(rows: Sequence[Row], candidate: str) -> list[TermBar | WholeTime]:
    terms = plot_data.terms(rows, candidate)
    return [*terms, *plot_data.whole_times(rows, candidate)] if terms else []


def draw_terms(records: Sequence[TermBar | WholeTime], title: str) -> Figure:
    """A bar for each term, with lines for the whole time. Hardware units work at the same time: bars do not add up to
    the whole time."""
    from plotly.graph_objects import Figure

    terms = [record for record in records if isinstance(record, TermBar)]
    longest = max((t.time_us for t in terms if not t.part_of_waits), default=0.0)
    figure = Figure()
    for part, name, colour, shape in (
        (False, "term", BLUE, ""), (True, "part of the waits", ORANGE, "/"),
    ):  # fmt: skip
        of = [t for t in terms if t.part_of_waits is part]
        names = [_indented(t) + (" (longest)" if t.time_us == longest and not part else "") for t in of]
        bar = _bar(name, [t.time_us for t in of], names, [microseconds(t.time_us) for t in of], colour, shape)
        figure.add_trace(bar)
    order = [_indented(t) + (" (longest)" if t.time_us == longest and not t.part_of_waits else "") for t in terms]
    figure.update_yaxes(categoryorder="array", categoryarray=order[::-1])
    whole = [record for record in records if isinstance(record, WholeTime)]
    end = 1.15 * max([t.time_us for t in terms] + [line.time_us for line in whole])
    for level, line in enumerate(sorted(whole, key=lambda line: line.time_us)):
        side = "right" if line.time_us > end / 2 else "left"
        figure.add_vline(
            line.time_us, line={"color": RED if line.name == "measured" else GREY, "dash": _DASHES[line.name]},
            annotation={"text": f"{line.name} {microseconds(line.time_us)}", "yshift": 16 * level, "xanchor": side},
            annotation_position="top",
        )  # fmt: skip
    figure.update_xaxes(title_text="µs", range=[0, end])
    note = "terms are predicted; units work at the same time, so terms do not add up"
    return laid_out(figure, f"Where the time of {title} goes", note, rows=len(terms), top=36)


def _indented(term: TermBar) -> str:
    return f"waits: {term.name}" if term.part_of_waits else term.name


def draw_memory(picked: Sequence[MemoryBar | Registers], title: str) -> Figure:
    """Bytes by level of memory, with a mark at the compulsory bytes."""
    from plotly.graph_objects import Figure, Scatter

    records = [record for record in picked if isinstance(record, MemoryBar)]
    sources = list(dict.fromkeys(r.source for r in records))
    order = list(dict.fromkeys(map(level_name, records)))
    figure = Figure()
    for number, source in enumerate(sources):
        of = [r for r in records if r.source == source]
        bars = _bar(
            source, [r.nbytes / _MIB for r in of], [level_name(r) for r in of], [moved_text(r) for r in of],
            (BLUE, ORANGE)[number % 2], PATTERNS[number],
        )  # fmt: skip
        figure.add_trace(bars)
    least = {level_name(r): r.compulsory_bytes for r in records if r.compulsory_bytes}
    figure.add_trace(
        Scatter(
            name="must move", mode="markers", x=[value / _MIB for value in least.values()], y=list(least),
            marker={"symbol": "line-ns-open", "size": 22, "color": RED, "line": {"width": 3}},
            hovertemplate="%{y}: %{x:.3g} MiB must move<extra></extra>",
        )
    )  # fmt: skip
    figure.update_yaxes(categoryorder="array", categoryarray=order[::-1])
    figure.update_xaxes(title_text="MiB", range=[0, 1.3 * max(r.nbytes for r in records) / _MIB])
    return laid_out(figure, f"Memory of {title}", "\n".join(memory_notes(picked)), rows=len(order) * len(sources))


def draw_mix(records: Sequence[MixShare], title: str) -> Figure:
    """Shares of warp instructions, one bar for each candidate."""
    from plotly.graph_objects import Figure

    figure = Figure()
    classes = list(dict.fromkeys(r.instructions for r in sorted(records, key=lambda r: -r.warp_instructions)))
    for number, name in enumerate(classes):
        of = [r for r in records if r.instructions == name]
        said = [f"{name} {r.share:.0%}" if r.share >= 0.08 else "" for r in of]
        bar = _bar(
            name, [100 * r.share for r in of], [r.candidate for r in of], said,
            HUES[number % len(HUES)], PATTERNS[number // len(HUES) % len(PATTERNS)],
        )  # fmt: skip
        told = [f"{name}: {count(r.warp_instructions)} warp instructions, {r.share:.1%}" for r in of]
        figure.add_trace(bar.update(customdata=told, textposition="inside", insidetextanchor="middle"))
    figure.update_layout(barmode="stack")
    figure.update_traces(hovertemplate="%{y}<br>%{customdata}<extra></extra>", textfont_color="white")
    order = list(dict.fromkeys(r.candidate for r in records))
    figure.update_yaxes(categoryorder="array", categoryarray=order[::-1])
    figure.update_xaxes(ticksuffix="%", range=[0, 100])
    what = title.rpartition(" ")[0] or title  # the title covers all candidates
    return laid_out(figure, f"Warp instructions of {what}", "PTX, as the emulator counts it", rows=2 * len(order))


def draw_stalls(records: Sequence[Stall], title: str) -> Figure:
    """Shares of the time in which warps could not issue."""
    from plotly.graph_objects import Figure

    records = [r for r in records if r.share >= _LEAST_STALL]
    names = [r.reason.replace("_", " ") for r in records]
    said = [f"{r.share:.0%}, waits for {r.meaning}" for r in records]
    figure = Figure([_bar("stalls", [100 * r.share for r in records], names, said, BLUE, "")])
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1])
    figure.update_xaxes(ticksuffix="%", range=[0, 1.6 * 100 * max(r.share for r in records)])
    return laid_out(figure, f"Stalls of {title}", "counted by Nsight Compute on the GPU", rows=len(records))


def _bar(
    name: str, values: Sequence[float], names: Sequence[str], said: Sequence[str], colour: str, pattern: str
) -> Bar:
    from plotly.graph_objects import Bar

    return Bar(
        orientation="h", name=name, x=list(values), y=list(names), text=list(said), textposition="outside",
        cliponaxis=False, marker={
            "color": colour, "line": {"color": colour, "width": 1 if pattern else 0},
            "pattern": {"shape": pattern, "fgcolor": colour, "bgcolor": "rgba(0,0,0,0)"} if pattern else {"shape": ""},
        },
        textfont={"color": GREY, "size": 11}, hovertemplate="%{y}: %{text}<extra></extra>",
    )  # fmt: skip

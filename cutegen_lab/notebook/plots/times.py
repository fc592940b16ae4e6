"""Times of all rounds, with those of the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cutegen_lab.notebook.plot_theme import BLUE, GREY, ORANGE, laid_out
from cutegen_lab.profiles.records import TimeSample
from cutegen_lab.profiles.rows import CANDIDATE
from cutegen_lab.views.units import microseconds

if TYPE_CHECKING:
    from plotly.graph_objects import Box, Figure, Scatter


def draw(records: Sequence[TimeSample], title: str) -> Figure:
    """A box with every sample for each subject whose rounds were kept, and each median with its 95% interval."""
    from plotly.graph_objects import Figure

    subjects = list(dict.fromkeys(r.subject for r in records))
    sampled = [s for s in subjects if any(r.subject == s and r.round for r in records)]
    figure = Figure([_samples(s, [r for r in records if r.subject == s and r.round]) for s in sampled])
    figure.add_trace(_medians([r for r in records if not r.round]))
    figure.update_yaxes(categoryorder="array", categoryarray=subjects[::-1])
    ends = [r.time_us for r in records]
    figure.update_xaxes(title_text="µs", range=[0.95 * min(ends), 1.1 * max(ends)])
    kinds = " and ".join(dict.fromkeys(r.basis for r in records))
    rounds = max((r.round for r in records), default=0)
    note = f"{kinds}; " + (f"{rounds} rounds, each with every subject" if rounds else "rounds were not kept")
    if kinds == "predicted":
        note = "predicted by the emulator's model: nothing was measured"
    return laid_out(figure, f"Times of {title}", note, rows=2 * len(subjects))


def _samples(subject: str, samples: Sequence[TimeSample]) -> Box:
    from plotly.graph_objects import Box

    return Box(
        name=subject, orientation="h", x=[s.time_us for s in samples], y=[subject] * len(samples), boxpoints="all",
        jitter=0.6, pointpos=0, marker={"color": BLUE if subject == CANDIDATE else GREY, "size": 4, "opacity": 0.6},
        line={"width": 1}, fillcolor="rgba(0,0,0,0)", showlegend=False, customdata=[s.round for s in samples],
        hovertemplate="%{y}, round %{customdata}: %{x:.4g} µs<extra></extra>",
    )  # fmt: skip


def _medians(medians: Sequence[TimeSample]) -> Scatter:
    from plotly.graph_objects import Scatter

    known = [m.low_us is not None and m.high_us is not None for m in medians]
    return Scatter(
        name="median and its 95% interval" if any(known) else "time", mode="markers+text",
        x=[m.time_us for m in medians], y=[m.subject for m in medians],
        text=[f"   {microseconds(m.time_us)}" for m in medians], textposition="middle right", textfont_color=ORANGE,
        marker={"symbol": "diamond", "size": 10, "color": ORANGE},
        error_x={"type": "data", "symmetric": False, "color": ORANGE,
                 "array": [(m.high_us or m.time_us) - m.time_us for m in medians],
                 "arrayminus": [m.time_us - (m.low_us or m.time_us) for m in medians]},
        hovertemplate="%{y}: %{text}<extra></extra>",
    )  # fmt: skip

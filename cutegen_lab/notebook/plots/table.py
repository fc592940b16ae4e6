"""The plots by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.timeline import Timeline
from cutegen_lab.notebook.plots import bars, checks, occupancy, roofline, timeline, times
from cutegen_lab.notebook.plots.plot import Plot
from cutegen_lab.profiles import select
from cutegen_lab.profiles.row import Row

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    Draw = Callable[[Sequence[Any], str], Figure]


@dataclass(frozen=True)
class Subject:
    """What plots may be of."""

    rows: Sequence[Row]
    """The run's table."""
    candidate: str
    """The candidate."""
    gpu: GpuSpec
    """GPU that the run is for."""
    timelines: Callable[[], Sequence[Timeline]] = tuple
    """Executes one block of each launch and records its warps."""


@dataclass(frozen=True)
class PlotSpec:
    """One plot."""

    help: str
    """What it shows, in one line."""
    pick: Callable[[Subject], Sequence[Any]]
    """Its records."""
    draw: Draw
    """Figure of records; the text is the plot's title."""
    empty: str
    """What is missing where there is no record."""


PLOTS: Mapping[str, PlotSpec] = {
    "roofline": PlotSpec(
        "every candidate under the GPU's ceilings, by the bytes it must move and those it moves",
        lambda of: roofline.pick(of.rows, of.gpu), roofline.draw, "no candidate has a time, counters and arithmetic",
    ),
    "time": PlotSpec(
        "where the predicted time goes, with the measured time and the bound",
        lambda of: bars.pick_terms(of.rows, of.candidate),
        bars.draw_terms, "it has no predicted time: profile it on the emulator",
    ),
    "memory": PlotSpec(
        "bytes that each level of memory moved, next to those that must move",
        lambda of: select.memory(of.rows, of.candidate), bars.draw_memory, "it has no profile",
    ),
    "occupancy": PlotSpec(
        "resident warps, what limits them, and what if the kernel took less",
        lambda of: [*select.limits(of.rows, of.candidate), *select.what_if(of.rows, of.candidate, of.gpu)],
        occupancy.draw, "it is not compiled",
    ),
    "mix": PlotSpec(
        "warp instructions of every candidate by class",
        lambda of: select.mix(of.rows), bars.draw_mix, "no candidate has a profile of the emulator",
    ),
    "checks": PlotSpec(
        "errors over what is allowed, by workload and inputs",
        lambda of: select.checks(of.rows, of.candidate), checks.draw, "it was not checked",
    ),
    "times": PlotSpec(
        "times of all rounds, with the baselines timed in the same rounds",
        lambda of: select.times(of.rows, of.candidate), times.draw, "it was not timed",
    ),
    "stalls": PlotSpec(
        "why warps could not issue, by Nsight Compute",
        lambda of: select.stalls(of.rows, of.candidate), bars.draw_stalls,
        "Nsight Compute did not profile it: run.profile(candidate, 'cuda') does, on a machine with a GPU and ncu",
    ),
    "timeline": PlotSpec(
        "what the warps of one block do, in the emulator's order of execution or by a GPU's clock",
        lambda of: of.timelines(), timeline.draw, "nothing was recorded",
    ),
}  # fmt: skip


def draw(name: str, of: Subject, what: str = "") -> Plot:
    """The plot ``name`` of a candidate. ``what``: names the run in its title. Raises InputError for an unknown plot, or
    one that the run has nothing for."""
    spec = PLOTS.get(name)
    if spec is None:
        meant = did_you_mean(name, PLOTS)
        raise InputError(f"there is no plot {name!r}", f"{meant} Plots: {', '.join(PLOTS)}.".strip())
    records = spec.pick(of)
    if not records:
        raise InputError(f"no plot {name!r} of {of.candidate}: {spec.empty}", f"Plots: {', '.join(PLOTS)}.")
    return Plot(name, spec.draw(records, f"{what} {of.candidate}".strip()), records)

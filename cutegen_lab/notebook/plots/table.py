"""The plots by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.notebook.plots import bars, checks, occupancy, roofline, times
from cutegen_lab.notebook.plots.plot import Plot
from cutegen_lab.profiles import select
from cutegen_lab.profiles.row import Row

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    Draw = Callable[[Sequence[Any], str], Figure]

Pick = Callable[[Sequence[Row], str, GpuSpec], Sequence[Any]]


@dataclass(frozen=True)
class PlotSpec:
    """One plot."""

    help: str
    """What it shows, in one line."""
    pick: Pick
    """Records from rows, a candidate and its GPU."""
    draw: Draw
    """Figure of records; the text is the plot's title."""
    empty: str
    """What is missing where there is no record."""


PLOTS: Mapping[str, PlotSpec] = {
    "roofline": PlotSpec(
        "every candidate under the GPU's ceilings, by the bytes it must move and those it moves",
        roofline.pick, roofline.draw, "no candidate has a time, counters and arithmetic",
    ),
    "time": PlotSpec(
        "where the predicted time goes, with the measured time and the bound",
        lambda rows, c, _: [*select.terms(rows, c), *select.whole_times(rows, c)] if select.terms(rows, c) else [],
        bars.draw_terms, "it has no predicted time: profile it on the emulator",
    ),
    "memory": PlotSpec(
        "bytes that each level of memory moved, next to those that must move",
        lambda rows, c, _: select.memory(rows, c), bars.draw_memory, "it has no profile",
    ),
    "occupancy": PlotSpec(
        "resident warps, what limits them, and what if the kernel took less",
        lambda rows, c, gpu: [*select.limits(rows, c), *select.what_if(rows, c, gpu)],
        occupancy.draw, "it is not compiled",
    ),
    "mix": PlotSpec(
        "warp instructions of every candidate by class",
        lambda rows, c, _: select.mix(rows), bars.draw_mix, "no candidate has a profile of the emulator",
    ),
    "checks": PlotSpec(
        "errors over what is allowed, by workload and inputs",
        lambda rows, c, _: select.checks(rows, c), checks.draw, "it was not checked",
    ),
    "times": PlotSpec(
        "times of all rounds, with the baselines timed in the same rounds",
        lambda rows, c, _: select.times(rows, c), times.draw, "it was not timed",
    ),
    "stalls": PlotSpec(
        "why warps could not issue, by Nsight Compute",
        lambda rows, c, _: select.stalls(rows, c), bars.draw_stalls,
        "Nsight Compute did not profile it: run.profile(candidate, 'cuda') does, on a machine with a GPU and ncu",
    ),
}  # fmt: skip


def draw(name: str, rows: Sequence[Row], candidate: str, gpu: GpuSpec, what: str = "") -> Plot:
    """The plot ``name`` of a candidate. ``what``: names the run in its title. Raises InputError for an unknown plot, or
    one that the run has nothing for."""
    spec = PLOTS.get(name)
    if spec is None:
        meant = did_you_mean(name, PLOTS)
        raise InputError(f"there is no plot {name!r}", f"{meant} Plots: {', '.join(PLOTS)}.".strip())
    records = spec.pick(rows, candidate, gpu)
    if not records:
        raise InputError(f"no plot {name!r} of {candidate}: {spec.empty}", f"Plots: {', '.join(PLOTS)}.")
    return Plot(name, spec.draw(records, f"{what} {candidate}".strip()), records)

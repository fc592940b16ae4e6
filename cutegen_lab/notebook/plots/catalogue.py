"""The plots by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.roofline import GPUS, GpuSpec
from cutegen_lab.core.timeline import Timeline
from cutegen_lab.notebook.plots import bars, checks, occupancy, roofline, timeline, times
from cutegen_lab.notebook.plots.plot import Plot
from cutegen_lab.profiles import plot_data
from cutegen_lab.profiles.roofline import records as roofline_records
from cutegen_lab.profiles.row import Row
from cutegen_lab.session.handle import unknown_candidate

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from cutegen_lab.session.handle import RunHandle

    Draw = Callable[[Sequence[Any], str], Figure]


@dataclass(frozen=True)
class Subject:
    """What a plot shows: a run, and one of its candidates."""

    rows: Sequence[Row]
    """The run's table."""
    candidate: str
    """The candidate."""
    gpu: GpuSpec
    """GPU that the run is for."""
    timelines: Callable[[], Sequence[Timeline]] = tuple
    """Executes one block of each launch and records its warps."""
    what: str = ""
    """The run's name in titles."""
    imported: str = ""
    """File that the run was read from; its kernels are not executed."""

    @cached_property
    def own(self) -> Sequence[Row]:
        """Rows of the candidate and of the problem."""
        return plot_data.own(self.rows, self.candidate)


@dataclass(frozen=True)
class PlotSpec:
    """One plot."""

    help: str
    """What it shows, in one line."""
    pick: Callable[[Subject], Sequence[Any]]
    """Its records."""
    draw: Draw
    """Makes the figure from the records and a title."""
    empty: str
    """What is missing if there is no record, and what to do."""
    ready: Callable[[Subject], object] | None = None
    """Whether there is a record; needed if ``pick`` executes the candidate."""

    def missing(self, of: Subject) -> str:
        """Why there is no plot; empty if there is one."""
        if self.ready and of.imported:
            return f"the run was read from {of.imported}, and its kernels are not executed here"
        return "" if (self.ready or self.pick)(of) else self.empty


PLOTS: Mapping[str, PlotSpec] = {
    "roofline": PlotSpec(
        "every candidate under the GPU's ceilings, at the bytes that it must move and at those that it moves",
        lambda of: roofline_records(of.rows, of.gpu), roofline.draw,
        "no candidate has a time, counters and arithmetic yet: these come with the timing of a candidate",
    ),
    "time": PlotSpec(
        "the parts of the predicted time, with the measured time and the bound",
        lambda of: bars.pick_terms(of.own, of.candidate),
        bars.draw_terms, "it has no predicted time: run.profile(candidate) profiles it on the emulator",
    ),
    "memory": PlotSpec(
        "bytes that each level of memory moved, next to those that must move; registers and spills",
        lambda of: plot_data.moved(of.own, of.candidate), bars.draw_memory,
        "it has no profile: run.profile(candidate) profiles it on the emulator",
    ),
    "occupancy": PlotSpec(
        "resident warps, what limits them, and how many there would be if the kernel used less",
        lambda of: plot_data.occupancy(of.own, of.candidate, of.gpu), occupancy.draw,
        "it is not compiled: choose a candidate that is",
    ),
    "mix": PlotSpec(
        "warp instructions of every candidate by class",
        lambda of: plot_data.mix(of.rows), bars.draw_mix,
        "no candidate was profiled on the emulator: run.profile(candidate) profiles one",
    ),
    "checks": PlotSpec(
        "errors divided by their limits, by workload and inputs",
        lambda of: plot_data.checks(of.own, of.candidate), checks.draw,
        "it was not checked: choose a candidate that compiled",
    ),
    "times": PlotSpec(
        "times of all rounds, with the baselines timed in the same rounds",
        lambda of: plot_data.times(of.own, of.candidate), times.draw,
        "it was not timed: choose a candidate that passed its checks",
    ),
    "stalls": PlotSpec(
        "why warps could not issue, by Nsight Compute",
        lambda of: plot_data.stalls(of.own, of.candidate), bars.draw_stalls,
        "Nsight Compute did not profile it: run.profile(candidate, 'cuda') does, on a machine with a GPU and ncu",
    ),
    "timeline": PlotSpec(
        "what the warps of one block do, in the emulator's order of execution; "
        "run.plot('timeline', device='cuda') measures it on a GPU",
        lambda of: of.timelines(), timeline.draw, "it is not compiled: choose a candidate that is",
        ready=lambda of: plot_data.kernels(of.own, of.candidate),
    ),
}  # fmt: skip


def subject_of(handle: RunHandle, candidate_id: str | None = None, device: str = "emulator") -> Subject:
    """A candidate of a run (default: the current one, otherwise the accepted one). ``device``: where timelines are
    recorded. Raises InputError if there is no such candidate."""
    state, chosen = handle.state, handle.selected_candidate(candidate_id)
    if chosen is None or chosen not in state.candidates:
        raise unknown_candidate(state, chosen or "")
    rows, gpu = handle.profile_rows(), GPUS[state.sol.gpu]
    return Subject(rows, chosen, gpu, lambda: handle.timelines(chosen, device), state.problem.name, state.imported)


def draw(name: str, of: Subject) -> Plot:
    """The plot ``name`` of a candidate. Raises InputError for an unknown plot, or one without records."""
    spec = PLOTS.get(name)
    if spec is None:
        meant = did_you_mean(name, PLOTS)
        raise InputError(f"there is no plot {name!r}", f"{meant} Plots: {', '.join(PLOTS)}.".strip())
    records = spec.pick(of)
    if not records:
        raise InputError(f"no plot {name!r} of {of.candidate}: {spec.empty}", f"Plots: {', '.join(PLOTS)}.")
    title = escape(f"{of.what} {of.candidate}".strip(), quote=False)
    return Plot(name, spec.draw([_escaped(record) for record in records], title), records)


def _escaped(record: Any) -> Any:
    """A record with its HTML escaped: plotly interprets some HTML, such as links, in every text. The many spans of a
    timeline are escaped where they are shown."""
    texts = {name: value for name, value in vars(record).items() if isinstance(value, str)}
    return replace(record, **{name: escape(text, quote=False) for name, text in texts.items()})

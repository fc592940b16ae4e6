"""Result of a search, and its report as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.plain_text import one_line, plain
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.trial import CheckResult, Timing
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.session.kernels import written_text
from cutegen_lab.session.specialised import Written
from cutegen_lab.session.versions import versions
from cutegen_lab.tuning import Space
from cutegen_lab.tuning.evaluations import Kind
from cutegen_lab.tuning.gain import Gain, gain_over_default
from cutegen_lab.tuning.protocols import SearchStats
from cutegen_lab.tuning.space import brief
from cutegen_lab.views.speed import band
from cutegen_lab.views.units import microseconds, seconds


@dataclass(frozen=True)
class Tunable:
    """A kernel's text and the configs to search."""

    what: str
    """Where it comes from, in words."""
    source: str
    """The text."""
    space: Space
    """The configs."""

    def __repr__(self) -> str:
        return f"<Tunable {self.what}: {len(self.source.splitlines())} lines>"


@dataclass(frozen=True)
class PlainKernel:
    """A kernel's text without a TUNABLE, from which stage one makes a :class:`Tunable`."""

    what: str
    """Where it comes from, in words."""
    source: str
    """The text."""

    def __repr__(self) -> str:
        return f"<PlainKernel {self.what}: {len(self.source.splitlines())} lines>"


@dataclass(frozen=True)
class Row:
    """Times of one workload, in microseconds; None if not timed."""

    workload: str
    """Name of the workload."""
    tensors: str
    """Its tensors in words."""
    default_us: float | None
    """Time of the default config."""
    chosen_us: float | None
    """Time of the chosen config."""
    own_us: float | None
    """Time of the fastest config for this workload."""
    own: Config
    """That config."""

    @property
    def by(self) -> str:
        """Its own fastest config in words; "-" if none ran."""
        return "-" if self.own_us is None else brief(self.own)


@dataclass
class TuningResult:
    """Result of a search."""

    tunable: Tunable
    """What was searched."""
    kind: Kind
    """"measured" or "predicted": predicted times were never measured."""
    device: str
    """Device that was timed or modelled."""
    cache: Path
    """File of the evaluations."""
    stats: SearchStats
    """Counts and durations of the search."""
    leading: tuple[Config, float] | None = None
    """Fastest config that ran, and its time; not judged if the search was interrupted."""
    best: Config | None = None
    """Fastest config that the judge passed."""
    check: CheckResult | None = None
    """The judge's check of ``best``."""
    timing: Timing | None = None
    """Its time."""
    ranked: Sequence[tuple[Config, float]] = ()
    """Configs that ran with their times, fastest first."""
    rejected: list[tuple[Config, Verdict, str]] = field(default_factory=list)
    """Configs that the judge rejected: config, verdict, reason."""
    rows: Sequence[Row] = ()
    """Times of each workload."""

    @property
    def interrupted(self) -> bool:
        return self.stats.stopped == "interrupted"

    @property
    def gain(self) -> Gain | None:
        """``best`` compared with the default config; None if no config passed."""
        if self.best is None or self.timing is None:
            return None
        return gain_over_default(self.best == self.tunable.space.default, self.timing, self.rows[0].default_us)

    def __repr__(self) -> str:
        said = concluded(self)
        return plain(f"<TuningResult {self.tunable.what}: {self.stats.evaluated} configs {self.kind}; {said[-1]}>")

    def _repr_html_(self) -> str:
        return plain(table_html(self) + paragraph_html(concluded(self)))


def report(problem: Problem, found: TuningResult) -> list[str]:
    """Lines of the report: what was searched, a row for each workload, and the verdict."""
    table = [f"{'workload':10} {'default':>12} {'one for all':>12} {'its fastest':>12}   by"]
    for row in found.rows:
        times = (duration(t) for t in (row.default_us, row.chosen_us, row.own_us))
        table.append(f"{row.workload:10} {' '.join(f'{t:>12}' for t in times)}   {row.by}")
    return [*searched(problem, found), "", *table, "", *concluded(found)]


def table_html(found: TuningResult) -> str:
    """The times by workload as a table, without scripts."""
    names = ("workload", "default", "one for all", "its fastest", "by")
    head = "".join(f'<th scope="col" style="text-align:left">{escape(name)}</th>' for name in names)
    rows = "".join(
        f'<tr><th scope="row">{escape(row.workload)}</th>'
        + "".join(f"<td>{escape(duration(t))}</td>" for t in (row.default_us, row.chosen_us, row.own_us))
        + f'<td style="text-align:left">{escape(row.by)}</td></tr>'
        for row in found.rows
    )
    return f"<table><caption>{escape(found.kind)} times by workload</caption><tr>{head}</tr>{rows}</table>"


def paragraph_html(lines: Sequence[str]) -> str:
    """Lines as a paragraph."""
    return f"<p>{'<br>'.join(map(escape, lines))}</p>"


def searched(problem: Problem, found: TuningResult) -> list[str]:
    stats = found.stats
    lines = [
        f"{problem.name}: {stats.evaluated} configs {found.kind} on {found.device}, {stats.from_cache} known before, "
        f"{stats.failed} failed, {stats.ruled_out} ruled out; {stats.stopped}",
    ]
    if found.kind == "predicted":
        lines.append("times are the emulator's predictions; nothing was measured")
    else:
        lines.append(
            f"prepared without the GPU in {seconds(stats.prepare_seconds)}, searched on it in "
            f"{seconds(stats.search_seconds)}: it was sampling for {stats.busy:.0%} of these"
        )
    if len(problem.workloads) > 1:
        lines.append(f"configs are compared by the geometric mean of their times on {len(problem.workloads)} workloads")
    return lines


def concluded(found: TuningResult) -> list[str]:
    lines = [f"not right: {brief(c)}: {v.value} ({reason})" for c, v, reason in found.rejected]
    if found.best is not None and found.check and found.timing:
        lines.append(f"best: {brief(found.best)}")
        at = f" on {found.rows[0].workload}" if len(found.rows) > 1 else ""
        likely = f"; {band(found.timing)}" if found.timing.kind == "predicted" else ""
        lines.append(
            f"verdict: passed ({found.check.reason}); {duration(found.timing.time_us)} {found.timing.kind}{at}{likely}"
        )
    elif found.interrupted and found.leading:
        lines.append(f"interrupted; fastest so far, not checked: {brief(found.leading[0])}")
        lines.append("the same search goes on from here")
    else:
        lines.append("verdict: no config that ran passed the judge" if found.leading else "verdict: no config ran")
    return lines


def kernel_text(problem: Problem, found: TuningResult, written: Written | None = None) -> str:
    """The kernel under a block of comments that states what was proven, with ``found.best`` as its config. ``written``:
    its text specialised for that config, to write instead."""
    assert found.best is not None and found.check and found.timing, "only what the judge passed is written"
    stats, row = found.stats, found.rows[0]
    text = [
        f"{problem.name}: {found.tunable.what}, tuned by cutegen-lab",
        f"workloads: {'; '.join(row.tensors for row in found.rows)}",
        f"verdict: {found.check.verdict.value} ({found.check.reason})",
        f"time: {duration(found.timing.time_us)} {found.timing.kind} on {found.timing.device}; the default config's "
        f"{duration(row.default_us)}, of {stats.evaluated + stats.from_cache} configs {found.kind}",
        "made with " + ", ".join(f"{k} {v}" for k, v in sorted(versions().items())),
    ]
    comments = [f"# {one_line(line)}".replace("µs", "us") for line in text]
    return written_text(comments, written or Written(found.tunable.source, found.best))


def duration(time_us: float | None) -> str:
    """A time in words, which may be None."""
    return "-" if time_us is None else microseconds(time_us)

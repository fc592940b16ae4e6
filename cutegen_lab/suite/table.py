"""The table of a suite as cells and sentences, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cutegen_lab.suite.aggregates import Estimate, Gap, Summary, summary
from cutegen_lab.suite.record import Row, Suite
from cutegen_lab.views.model import Tone
from cutegen_lab.views.units import microseconds, plural, seconds, significant

NOT_MEASURED = "fast_p: not computed, because it needs correct kernels whose times were all measured (on a GPU)"
_TONES: dict[str, Tone] = {"correct": "good", "wrong": "bad", "not compiled": "bad", "not read": "bad"}
_COLUMNS: Mapping[str, Callable[[Row], str]] = {
    "problem": lambda row: row.name,
    "outcome": lambda row: row.outcome,
    "template": lambda row: row.family or "-",
    "integrity": lambda row: row.integrity or "-",
    "candidates": lambda row: str(row.candidates),
    "time": lambda row: f"{microseconds(row.time_us)} {row.kind}" if row.time_us else "-",
    "bound": lambda row: _or_dash(row.bound_us, microseconds),
    "floor": lambda row: _or_dash(row.floor_us, microseconds),
    "gap": lambda row: _or_dash(row.gap, times),
    "over eager": lambda row: _or_dash(row.over_eager, times),
    "over the best": lambda row: f"{times(row.over_best)} ({row.best})" if row.over_best else "-",
    "tokens": lambda row: f"{row.tokens:,}",
    "dollars": lambda row: _or_dash(row.usd, lambda usd: f"{usd:.4f}"),
    "work": lambda row: seconds(row.seconds) if row.run_id else "-",
    "GPU": lambda row: _or_dash(row.gpu_seconds, seconds),
    "run": lambda row: row.run_id or "-",
    "note": lambda row: "; ".join(filter(None, (row.reason, row.label, _quarantine(row)))),
}
_OPTIONAL: Mapping[str, Callable[[Row], object]] = {
    "over eager": lambda row: row.over_eager, "over the best": lambda row: row.over_best,
    "tokens": lambda row: row.tokens, "dollars": lambda row: row.usd is not None,
}  # fmt: skip


@dataclass(frozen=True)
class Section:
    """A table."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    tones: tuple[Tone, ...]
    """Tone of each row's outcome."""


def sections(suite: Suite) -> list[Section]:
    """The problems, then those whose times do not count. Columns that no row has are left out."""
    kept = [name for name in _COLUMNS if name not in _OPTIONAL or any(map(_OPTIONAL[name], suite.rows))]
    quarantined = [row for row in suite.rows if row.integrity == "quarantined"]
    apart = [row for row in suite.rows if not row.telling and row not in quarantined]
    rest = [row for row in suite.rows if row not in apart and row not in quarantined]
    named = (
        ("Problems", rest),
        ("Degenerate problems, left out of fast_p and gaps", apart),
        ("Quarantined: a time below the bound, which never counts as fast", quarantined),
    )
    return [_section(title, kept, rows) for title, rows in named if rows]


def sentences(suite: Suite) -> list[str]:
    """The summary: of the whole suite, then counts of each level."""
    lines = [*_counts(suite), *_aggregates(summary(suite.rows))]
    levels = sorted({row.level for row in suite.rows if row.level is not None})
    for level in levels if len(levels) > 1 else []:
        part = summary(tuple(row for row in suite.rows if row.level == level))
        lines += [f"level {level}: {line}" for line in (_tally(part), *_fast(part), *map(_gap, part.gaps))]
    return lines


def times(value: float) -> str:
    return f"{significant(value)}×"


def interval_text(found: Estimate) -> str:
    """``1.4× (95%: 1.2 to 1.7)``."""
    if found.interval is None:
        return f"{times(found.value)} (one value: no interval)"
    low, high = map(significant, found.interval)
    return f"{times(found.value)} (95%: {low} to {high})"


def line_of(row: Row) -> str:
    """A row in one line, for progress."""
    time = f", {microseconds(row.time_us)} {row.kind}" if row.time_us else ""
    gap = f", {times(row.gap)} the bound" if row.gap else ""
    return f"{row.outcome}{time}{gap}{f': {row.reason}' if row.reason else ''}"


def _section(title: str, names: Sequence[str], rows: Sequence[Row]) -> Section:
    cells = tuple(tuple(_COLUMNS[name](row) for name in names) for row in rows)
    return Section(title, tuple(names), cells, tuple(_TONES.get(row.outcome, "warn") for row in rows))


def _counts(suite: Suite) -> Iterator[str]:
    found = summary(suite.rows)
    if left := suite.total - found.rows:
        yield f"not ended: {left} of {plural(suite.total, 'problem')}"
    if not_run := [row.reason for row in suite.rows if row.outcome == "not run"]:
        yield f"not run: {len(not_run)} of {plural(suite.total, 'problem')}, {not_run[0]}"
    yield _tally(found)


def _tally(found: Summary) -> str:
    return (
        f"{plural(found.rows, 'problem')}: {found.read} read, {found.recognised} recognised by a template, "
        f"{found.compiled} compiled, {found.correct} correct; {found.degenerate} degenerate, {found.quarantined} "
        "quarantined"
    )


def _aggregates(found: Summary) -> Iterator[str]:
    yield from _fast(found) or [NOT_MEASURED]
    yield from map(_gap, found.gaps)
    cost = f", ${found.usd:.4f}" if found.usd is not None else ""
    gpu = f", {seconds(found.gpu_seconds)} of them on a GPU" if found.gpu_seconds is not None else ""
    yield f"{found.tokens:,} tokens{cost}, {seconds(found.seconds)} of work{gpu}"


def _fast(found: Summary) -> list[str]:
    named = (("eager PyTorch", found.fast_eager), ("the fastest baseline", found.fast_best))
    return [
        f"fast_p against {name}: " + ", ".join(f"{share:.1%} at {p:g}" for p, share in shares.items())
        for name, shares in named if shares is not None
    ]  # fmt: skip


def _gap(found: Gap) -> str:
    return (
        f"{found.kind} time divided by the bound, {plural(found.count, 'correct kernel')} on {found.device}: geometric "
        f"mean {interval_text(found.geomean)}, median {interval_text(found.median)}"
    )


def _quarantine(row: Row) -> str:
    return f"{plural(row.too_fast, 'candidate')} below the bound" if row.too_fast else ""


def _or_dash(value: float | None, shown: Callable[[float], str]) -> str:
    return "-" if value is None else shown(value)

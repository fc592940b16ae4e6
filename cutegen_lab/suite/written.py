"""A suite as text, and its files ``suite.json`` and ``suite.html``."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cutegen_lab.core.plain_text import one_line, plain
from cutegen_lab.session.outputs import may_write, write_out
from cutegen_lab.suite.aggregates import Summary, summary
from cutegen_lab.suite.compare import Comparison, Pair
from cutegen_lab.suite.record import Suite
from cutegen_lab.suite.table import interval_text, line_of, sections, sentences, times
from cutegen_lab.views.html import render
from cutegen_lab.views.text import columns
from cutegen_lab.views.units import plural

JSON, PAGE = "suite.json", "suite.html"
_NOTE = 100  # maximum number of characters of a note in a terminal


def suite_text(suite: Suite) -> str:
    """The table and the summary."""
    lines = []
    for section in sections(suite):
        rows = [(*row[:-1], textwrap.shorten(one_line(row[-1]), _NOTE, placeholder=" …")) for row in section.rows]
        lines += [section.title, *(f"  {line}" for line in columns([section.head, *rows])), ""]
    return plain("\n".join([*lines, *sentences(suite)]))


def suite_page(suite: Suite) -> str:
    """A self-contained page without scripts."""
    settings = ", ".join(f"{name} {value}" for name, value in suite.settings.items() if value not in ("", None))
    return render(
        "suite.html", title=f"Suite {suite.name}", suite=suite, settings=settings, sections=sections(suite),
        sentences=sentences(suite),
    )  # fmt: skip


def may_write_suite(folder: Path) -> None:
    """Raises InputError if ``folder`` has files of these names that cutegen did not write."""
    for name in (JSON, PAGE):
        may_write(folder / name)


def write_suite(folder: Path, suite: Suite) -> None:
    """Writes both files. Raises InputError as :func:`may_write_suite`, StoreError."""
    with_summary = suite.model_copy(update={"summary": summary_facts(summary(suite.rows))})
    write_out(folder / JSON, with_summary.model_dump_json(indent=2) + "\n")
    write_out(folder / PAGE, suite_page(suite))


def summary_facts(found: Summary) -> dict[str, Any]:
    """A summary as JSON."""
    return {**asdict(found), "fast_eager": _by_text(found.fast_eager), "fast_best": _by_text(found.fast_best)}


def comparison_text(found: Comparison, names: tuple[str, str]) -> str:
    """What differs, with the two suites' ``names``."""
    first, second = names
    rows = [("problem", first, second, "time"), *(_side_by_side(pair) for pair in found.pairs)]
    lines = columns(rows) if found.pairs else ["no problem is in both suites"]
    for title, named in (
        (f"only {first} solved", [pair.first.name for pair in found.lost]),
        (f"only {second} solved", [pair.first.name for pair in found.gained]),
        (f"only in {first}", [row.name for row in found.only_first]),
        (f"only in {second}", [row.name for row in found.only_second]),
    ):
        lines.append(f"{title}: {', '.join(named) or 'none'}")
    if found.geomean is None:
        lines.append("no times to compare: they need two correct kernels, one kind of time and one device")
    else:
        lines.append(
            f"time of {second} divided by that of {first}, {plural(len(found.ratios), 'problem')}: geometric mean "
            f"{interval_text(found.geomean)}"
        )
    return plain("\n".join(lines))


def comparison_facts(found: Comparison) -> dict[str, Any]:
    """A comparison as JSON."""
    return {
        "pairs": [
            {"name": p.first.name, "first": p.first.outcome, "second": p.second.outcome, "ratio": p.ratio}
            for p in found.pairs
        ],
        "lost": [pair.first.name for pair in found.lost],
        "gained": [pair.first.name for pair in found.gained],
        "only_first": [row.name for row in found.only_first],
        "only_second": [row.name for row in found.only_second],
        "geomean": asdict(found.geomean) if found.geomean else None,
    }


def _side_by_side(pair: Pair) -> tuple[str, ...]:
    first, second = (
        textwrap.shorten(one_line(line_of(row)), 60, placeholder=" …") for row in (pair.first, pair.second)
    )
    note = f" ({pair.first.label})" if pair.first.label else ""
    return pair.first.name, first, second, f"{times(pair.ratio)}{note}" if pair.ratio else "-"


def _by_text(shares: Mapping[float, float] | None) -> dict[str, float] | None:
    return None if shares is None else {f"{p:g}": share for p, share in shares.items()}

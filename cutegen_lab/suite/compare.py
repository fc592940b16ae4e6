"""Two suites side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean

from cutegen_lab.suite.aggregates import Estimate, estimate
from cutegen_lab.suite.record import Row, Suite


@dataclass(frozen=True)
class Pair:
    """A problem that both suites have."""

    first: Row
    second: Row

    @property
    def ratio(self) -> float | None:
        """The second suite's time divided by the first's; None unless both are correct, with times of one kind on one
        device."""
        before, after = self.first, self.second
        if not (before.correct and after.correct) or before.conditions != after.conditions:
            return None
        return after.time_us / before.time_us if before.time_us and after.time_us else None


@dataclass(frozen=True)
class Comparison:
    """What differs between two suites."""

    pairs: tuple[Pair, ...]
    """Problems of both, in the first suite's order."""
    only_first: tuple[Row, ...]
    """Problems that only the first has."""
    only_second: tuple[Row, ...]
    """Problems that only the second has."""
    lost: tuple[Pair, ...]
    """Problems that only the first solved."""
    gained: tuple[Pair, ...]
    """Problems that only the second solved."""
    ratios: tuple[Pair, ...]
    """Problems whose times can be compared, without degenerate ones and quarantined results."""
    geomean: Estimate | None
    """Geometric mean of the ratios; None without any."""


def compared(first: Suite, second: Suite) -> Comparison:
    """Compares two suites; problems are the same if their keys are (their names, if one suite could not read
    the file)."""
    unread = {row.name for suite in (first, second) for row in suite.rows if not row.problem_key}
    before, after = _by_problem(first.rows, unread), _by_problem(second.rows, unread)
    pairs = tuple(Pair(row, after[key]) for key, row in before.items() if key in after)
    ratios = tuple(pair for pair in pairs if pair.ratio is not None and pair.first.counted and pair.second.counted)
    values = [pair.ratio for pair in ratios if pair.ratio is not None]
    return Comparison(
        pairs=pairs,
        only_first=tuple(row for key, row in before.items() if key not in after),
        only_second=tuple(row for key, row in after.items() if key not in before),
        lost=tuple(pair for pair in pairs if pair.first.correct and not pair.second.correct),
        gained=tuple(pair for pair in pairs if pair.second.correct and not pair.first.correct),
        ratios=ratios,
        geomean=estimate(values, geometric_mean) if values else None,
    )


def _by_problem(rows: Iterable[Row], by_name: Collection[str]) -> Mapping[str, Row]:
    return {row.name if row.name in by_name else row.problem_key: row for row in rows}

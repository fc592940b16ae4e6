"""Numbers about a whole suite. Degenerate problems and quarantined results are left out of times; measured and
predicted times are never mixed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import geometric_mean, median

from cutegen_lab.suite.record import Row

THRESHOLDS = (0.0, 0.5, 1.0, 1.5, 2.0)
"""Values of p for fast_p."""
_RESAMPLES, _SEED = 2000, 0
_TAIL = 0.025  # on each side of a 95% interval

Interval = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """A statistic of a sample."""

    value: float
    """Its value."""
    interval: Interval | None
    """Its 95% interval (percentile bootstrap; Efron 1979); None for fewer than two values."""


@dataclass(frozen=True)
class Gap:
    """Times divided by bounds, of correct kernels with times of one kind on one device."""

    kind: str
    """"measured" or "predicted"."""
    device: str
    """The device."""
    count: int
    """Number of kernels."""
    geomean: Estimate
    median: Estimate


@dataclass(frozen=True)
class Summary:
    """Counts over all rows, and aggregates over those that are not degenerate."""

    rows: int
    """Number of rows."""
    read: int
    """Number of problems that could be read."""
    recognised: int
    """Number of problems that a template serves."""
    compiled: int
    """Number of problems with a candidate that compiled."""
    correct: int
    """Number of problems with an accepted, correct kernel."""
    degenerate: int
    """Number of degenerate problems."""
    quarantined: int
    """Number of results with a time below the bound."""
    fast_eager: Mapping[float, float] | None
    """fast_p against eager PyTorch by p; None without measured times."""
    fast_best: Mapping[float, float] | None
    """fast_p against the fastest baseline by p; None without measured times."""
    gaps: tuple[Gap, ...]
    """Gap to the bound, for each kind of time and device."""
    tokens: int
    """Tokens of all answers."""
    usd: float | None
    """Dollars; None without a price."""
    seconds: float
    """Seconds of work of all runs."""
    gpu_seconds: float | None
    """Seconds of checks, timings and profiles on a GPU; None without a GPU."""


@lru_cache(maxsize=32)  # the intervals of 250 problems take 0.1 s
def summary(rows: tuple[Row, ...]) -> Summary:
    """The aggregates of ``rows``."""
    telling = [row for row in rows if row.telling]
    on_gpu = [row.gpu_seconds for row in rows if row.gpu_seconds is not None]
    costs = [row.usd for row in rows if row.usd is not None]
    measured = _only_measured(telling)
    return Summary(
        rows=len(rows),
        read=sum(row.outcome != "not read" for row in rows),
        recognised=sum(bool(row.family) for row in rows),
        compiled=sum(row.compiled for row in rows),
        correct=sum(row.correct for row in rows),
        degenerate=len(rows) - len(telling),
        quarantined=sum(row.integrity == "quarantined" for row in rows),
        fast_eager=fast(telling, lambda row: row.over_eager) if measured else None,
        fast_best=fast(telling, lambda row: row.over_best) if measured else None,
        gaps=_gaps(telling),
        tokens=sum(row.tokens for row in rows),
        usd=sum(costs) if costs else None,
        seconds=sum(row.seconds for row in rows),
        gpu_seconds=sum(on_gpu) if on_gpu else None,
    )


def fast(rows: Sequence[Row], speedup: Callable[[Row], float | None]) -> dict[float, float]:
    """fast_p for each of :data:`THRESHOLDS`: the share of all ``rows`` that are correct and more than p times as fast
    as the baseline (KernelBench, arXiv 2502.10517, section 3.3). fast_0 is the share that is correct. A quarantined
    result counts as if there were none."""
    return {
        p: sum(row.counted and (p == 0 or (speedup(row) or 0.0) > p) for row in rows) / len(rows) for p in THRESHOLDS
    }


def estimate(values: Sequence[float], statistic: Callable[[Sequence[float]], float]) -> Estimate:
    """``statistic`` of ``values`` (not empty), with the same interval each time."""
    if len(values) < 2:
        return Estimate(statistic(values), None)
    draw = random.Random(_SEED)  # noqa: S311 - resampling
    found = sorted(statistic(draw.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    cut = round(_TAIL * _RESAMPLES)
    return Estimate(statistic(values), (found[cut], found[-1 - cut]))


def _only_measured(rows: Iterable[Row]) -> bool:
    """Whether there are times of correct kernels, and all were measured."""
    return {row.kind for row in rows if row.counted and row.kind} == {"measured"}


def _gaps(rows: Iterable[Row]) -> tuple[Gap, ...]:
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.counted and row.gap is not None:
            found.setdefault(row.conditions, []).append(row.gap)
    return tuple(
        Gap(kind, device, len(gaps), estimate(gaps, geometric_mean), estimate(gaps, median))
        for (kind, device), gaps in found.items()
    )

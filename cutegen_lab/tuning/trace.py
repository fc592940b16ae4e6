"""A search as data to look at: its evaluations in order, folded over workloads, beside what was predicted of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.tuning.evaluations import Evaluation, Kind
from cutegen_lab.tuning.space import key


@dataclass(frozen=True)
class Point:
    """One config. ``time_us`` is the geometric mean over the workloads, None where it failed (``failure``, ``reason``)
    or is not yet timed on all. ``predicted_us`` and ``first_us`` are of the first workload: a model's and the clock's.
    """

    config: Config
    time_us: float | None
    failure: str = ""
    reason: str = ""
    ruled_out: bool = False
    first_us: float | None = None
    predicted_us: float | None = None


@dataclass(frozen=True)
class Trace:
    """``points`` in the order of their evaluation, without those ruled out before they cost the device any time."""

    what: str
    kind: Kind
    device: str
    domains: Mapping[str, Sequence[Scalar]]
    default: Config
    points: Sequence[Point]
    ruled_out: int = 0
    workloads: int = 1

    @property
    def best(self) -> Point | None:
        timed = [p for p in self.points if p.time_us is not None]
        return min(timed, key=lambda p: p.time_us or math.inf, default=None)

    def best_so_far(self) -> list[float | None]:
        """In microseconds, after each of the points."""
        best, found = math.inf, list[float | None]()
        for point in self.points:
            best = min(best, point.time_us or math.inf)
            found.append(best if math.isfinite(best) else None)
        return found

    def medians(self, name: str) -> dict[Scalar, float]:
        """Of each value of a parameter, the median time of the configs that have it, in the domain's order."""
        by: dict[Scalar, list[float]] = {}
        for point in self.points:
            if point.time_us is not None and name in point.config:
                by.setdefault(point.config[name], []).append(point.time_us)
        return {value: median(by[value]) for value in self.domains[name] if value in by}


def folded(found: Iterable[Evaluation], workloads: Sequence[str]) -> Iterator[Point]:
    """Of each config one point over ``workloads`` (signatures), in the order in which configs first occur."""
    by: dict[str, dict[str, Evaluation]] = {}
    for one in found:
        if one.workload in workloads:
            by.setdefault(key(one.config), {})[one.workload] = one
    for of in by.values():
        mine = [of[name] for name in workloads if name in of]
        bad = next((e for e in mine if e.failure), None)
        times = [e.time_us for e in mine if e.time_us is not None]
        whole = bad is None and len(mine) == len(workloads)
        first = of.get(workloads[0])
        yield Point(
            mine[0].config, geometric(times) if whole else None,
            bad.failure if bad else "", bad.reason if bad else "", bool(bad and bad.ruled_out),
            first.time_us if first else None,
        )  # fmt: skip


def averaged(workloads: int) -> str:
    """What to say behind a config's time: nothing where it is of one workload."""
    return f" (geometric mean of {workloads} workloads)" if workloads > 1 else ""


def geometric(times_us: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, times_us)) / len(times_us))

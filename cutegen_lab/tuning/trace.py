"""A search as data: its evaluations in order, combined over workloads, with their predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.tuning.evaluations import Evaluation, Kind
from cutegen_lab.tuning.space import brief, key


@dataclass(frozen=True)
class Point:
    """One evaluated config."""

    config: Config
    """The config."""
    time_us: float | None
    """Geometric mean over the workloads in microseconds; None if it failed or is not yet timed on all."""
    failure: str = ""
    """Verdict, if it failed."""
    reason: str = ""
    """Why it failed, in one line."""
    ruled_out: bool = False
    """Whether the config failed without reaching the device."""
    first_us: float | None = None
    """Time on the first workload in microseconds."""
    predicted_us: float | None = None
    """Predicted time on the first workload in microseconds."""


@dataclass(frozen=True)
class Trace:
    """A search as data to look at."""

    what: str
    """The kernel, in words."""
    kind: Kind
    """"measured" or "predicted"."""
    device: str
    """Device that was timed or modelled."""
    domains: Mapping[str, Sequence[Scalar]]
    """Possible values by parameter."""
    default: Config
    """The default config."""
    points: Sequence[Point]
    """Evaluated configs in order, without those ruled out."""
    ruled_out: int = 0
    """Number of configs ruled out."""
    workloads: int = 1
    """Number of workloads."""

    def __repr__(self) -> str:
        best = "none ran" if self.best is None else f"best {self.best.time_us:.4g} us by {brief(self.best.config)}"
        return f"<Trace {self.what}: {len(self.points)} configs {self.kind}; {best}>"

    @property
    def best(self) -> Point | None:
        timed = [p for p in self.points if p.time_us is not None]
        return min(timed, key=lambda p: p.time_us or math.inf, default=None)

    def best_so_far(self) -> list[float | None]:
        """Best time in microseconds after each point."""
        best, found = math.inf, list[float | None]()
        for point in self.points:
            best = min(best, point.time_us or math.inf)
            found.append(best if math.isfinite(best) else None)
        return found

    def medians(self, name: str) -> dict[Scalar, float]:
        """Median time of the configs with each value of a parameter, in the domain's order."""
        by: dict[Scalar, list[float]] = {}
        for point in self.points:
            if point.time_us is not None and name in point.config:
                by.setdefault(point.config[name], []).append(point.time_us)
        return {value: median(by[value]) for value in self.domains[name] if value in by}

    def importance(self) -> dict[str, float]:
        """How much of the variance of the configs' log times each parameter's value explains by itself, from 0 to 1,
        largest first; parameters with too few configs to tell are left out.

        It is omega squared of a one-way analysis of variance (Hays, Statistics for Psychologists, 1963), which does not
        grow with the number of values, as the plain share of the variance does. A search tries good values more often,
        so this is about the configs that it tried; parameters that matter together share what they explain.
        """
        shares = ((name, self._explained(name)) for name, values in self.domains.items() if len(values) > 1)
        found = {name: share for name, share in shares if share is not None}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _explained(self, name: str) -> float | None:
        groups: dict[Scalar, list[float]] = {}
        for point in self.points:
            if point.time_us and name in point.config:
                groups.setdefault(point.config[name], []).append(math.log(point.time_us))
        every = [log for logs in groups.values() for log in logs]
        left = len(every) - len(groups)
        if len(groups) < 2 or left < 1:
            return None
        mean = fmean(every)
        between = sum(len(logs) * (fmean(logs) - mean) ** 2 for logs in groups.values())
        total = sum((log - mean) ** 2 for log in every)
        if total == 0.0:
            return None
        within = max(total - between, 0.0) / left
        return max(0.0, (between - (len(groups) - 1) * within) / (total + within))


def folded(found: Iterable[Evaluation], workloads: Sequence[str]) -> Iterator[Point]:
    """One point for each config over ``workloads`` (signatures), in order of first occurrence."""
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
    """Remark after a config's time that it is a mean; empty for one workload."""
    return f" (geometric mean of {workloads} workloads)" if workloads > 1 else ""


def geometric(times_us: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, times_us)) / len(times_us))

"""Replays a search on cached evaluations, without compiling, running or timing anything, to see how many evaluations it
needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.session.tune import TuneSettings
from cutegen_lab.session.tuned import Tunable
from cutegen_lab.tuning import Evaluation, Place, Search, key, replay
from cutegen_lab.tuning.evaluations import recorded, source_key
from cutegen_lab.tuning.search import Step
from cutegen_lab.tuning.trace import Trace, folded

NEAR = 0.03  # a config within this fraction of the fastest time counts as found


@dataclass(frozen=True)
class Simulated:
    """A search replayed on recorded evaluations."""

    place: Place
    """Source, arch, device and driver of the recorded evaluations."""
    configs: int
    """Number of recorded configs."""
    best_us: float
    """Time of the fastest recorded config, in microseconds."""
    steps: Sequence[Step]
    """The replayed search, evaluation by evaluation."""
    trace: Trace
    """The recorded evaluations in the order the search took them."""

    @property
    def near(self) -> int | None:
        """Evaluations until a config within 3% of the fastest recorded one was timed; None if none was."""
        return self._until((1 + NEAR) * self.best_us)

    @property
    def fastest(self) -> int | None:
        """Evaluations until the fastest recorded config was timed; None if it was not."""
        return self._until(self.best_us)

    def _until(self, time_us: float) -> int | None:
        return next((s.evaluations for s in self.steps if s.time_us is not None and s.time_us <= time_us), None)


def simulate(path: Path, problem: Problem, tunable: Tunable, settings: TuneSettings) -> Simulated:
    """Replays a search on the recorded evaluations of one :class:`Place`: a GPU before a model, then the one with the
    most. On those of a GPU, recorded predictions guide the search as in a real one. Raises InputError if nothing is
    recorded."""
    here = {p: e for p, e in recorded(path, source_key(tunable.source, problem)).items() if p.arch == settings.arch}
    every = {place: _times(found, problem.workloads) for place, found in here.items()}
    every = {place: times for place, times in every.items() if any(times.values())}
    if not every:
        raise InputError(
            f"{path} holds no evaluation of {tunable.what} for this problem and {settings.arch}",
            Hint(Advice.SEARCH_FIRST),
        )
    place = max(every, key=lambda p: (p.kind == "measured", len(every[p])))
    times = every[place]
    configs = tuple(c for c in tunable.space.configs if key(c) in times)
    search = Search(replace(tunable.space, configs=configs), seed=settings.seed)
    predicted: dict[str, float] = {}
    if place.kind == "measured":
        guesses = [found for p, found in every.items() if p.kind == "predicted"]
        predicted = {name: t for found in guesses for name, t in found.items() if t is not None}
        search.predict(predicted)
    steps = replay(search, times, settings.limits.evaluations)
    known = {key(p.config): p for p in folded(here[place], [w.signature for w in problem.workloads])}
    points = [replace(known[key(s.config)], predicted_us=predicted.get(key(s.config))) for s in steps]
    trace = Trace(
        tunable.what, place.kind, place.device, tunable.space.domains, tunable.space.default, points,
        workloads=len(problem.workloads),
    )  # fmt: skip
    return Simulated(place, len(configs), min(t for t in times.values() if t is not None), steps, trace)


def _times(found: Sequence[Evaluation], workloads: Sequence[Workload]) -> dict[str, float | None]:
    """Geometric mean of each config's times over ``workloads``; None if it failed on one. Without configs that were
    ruled out."""
    points = [p for p in folded(found, [w.signature for w in workloads]) if not p.ruled_out]
    return {key(p.config): p.time_us for p in points if p.failure or p.time_us is not None}

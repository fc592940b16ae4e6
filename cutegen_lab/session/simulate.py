"""A search over what the cache holds, without compiling, running or timing anything: how few evaluations it needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.session.tune import TuneSettings
from cutegen_lab.session.tuned import Tunable
from cutegen_lab.tuning import Evaluation, Place, Search, key, replay
from cutegen_lab.tuning.evaluations import recorded, source_key
from cutegen_lab.tuning.search import Step
from cutegen_lab.tuning.trace import Trace, folded

NEAR = 0.03  # of the fastest: what counts as found


@dataclass(frozen=True)
class Simulated:
    """``steps`` of a search over the ``configs`` recorded at ``place``. ``near`` and ``fastest`` are the evaluations
    until a config within 3% of the fastest recorded one, and that one itself, were timed (None: they were not)."""

    place: Place
    configs: int
    best_us: float
    steps: Sequence[Step]
    trace: Trace

    @property
    def near(self) -> int | None:
        return self._until((1 + NEAR) * self.best_us)

    @property
    def fastest(self) -> int | None:
        return self._until(self.best_us)

    def _until(self, time_us: float) -> int | None:
        return next((s.evaluations for s in self.steps if s.time_us is not None and s.time_us <= time_us), None)


def simulate(path: Path, problem: Problem, tunable: Tunable, settings: TuneSettings) -> Simulated:
    """Replays a search on the place with the most evaluations, a GPU before a model; where it is a GPU, the recorded
    predictions lead the search as they would have. Raises InputError where nothing is recorded."""
    here = {p: e for p, e in recorded(path, source_key(tunable.source, problem)).items() if p.arch == settings.arch}
    every = {place: _times(found, problem.workloads) for place, found in here.items()}
    every = {place: times for place, times in every.items() if any(times.values())}
    if not every:
        raise InputError(
            f"{path} holds no evaluation of {tunable.what} for this problem and {settings.arch}",
            "Run the same command without --simulate first.",
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
    """Of each config the geometric mean over ``workloads``, None where it failed on one; without those ruled out."""
    points = [p for p in folded(found, [w.signature for w in workloads]) if not p.ruled_out]
    return {key(p.config): p.time_us for p in points if p.failure or p.time_us is not None}

"""All numbers of a run as rows: a pure function of its state, its builds and its profiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.counters import COUNTERS
from cutegen_lab.core.predicted import terms_us
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.run import RunState
from cutegen_lab.core.trial import CheckResult, Profile, Resources, Timing, WorkloadCheck
from cutegen_lab.profiles.kernel_names import short_names
from cutegen_lab.profiles.residency import residency_rows
from cutegen_lab.profiles.row import Row, Source

CANDIDATE = "candidate"
"""Subject of the candidate's own time, next to those of baselines."""
_SOURCES: Mapping[str, Source] = {"emulator": "emulator", "hardware": "ncu"}
_PREFIXES = {"warp_instructions_": "warp instructions", "tensor_ops_": "operations"}


def rows(
    state: RunState, builds: Mapping[str, Build] | None = None, more: Mapping[str, Sequence[Profile]] | None = None
) -> tuple[Row, ...]:
    """Every number that is known of a run.

    ``builds``: by candidate, of the main workload; without them resources of launches are left out. ``more``: by
    candidate, profiles besides the recorded one.
    """
    builds, more = builds or {}, more or {}
    found = list(_of_the_problem(state))
    for candidate_id in state.candidates:
        trial = state.trials.get(candidate_id)
        profiles = [trial.profile] if trial and trial.profile else []
        profiles += [profile for profile in more.get(candidate_id, ()) if profile not in profiles]
        build = builds.get(candidate_id)
        main = _Rows(state.run_id, candidate_id, state.problem.workload.name)
        if trial and trial.timing:
            found += main.timing(trial.timing)
        for profile in profiles:
            found += main.profile(profile, build)
        if trial and trial.check:
            found += main.checks(trial.check)
        if build is not None:
            about = (state.run_id, candidate_id, state.problem.workload.name)
            found += residency_rows(about, build, GPUS[state.sol.gpu])
        elif resources := _resources(state, candidate_id):
            found += main.resources(resources)
    return tuple(found)


def _resources(state: RunState, candidate_id: str) -> Resources | None:
    compiled = state.compiled.get(candidate_id)
    return compiled.resources if compiled else None


def _of_the_problem(state: RunState) -> Iterator[Row]:
    about = _Rows(state.run_id, "", state.problem.workload.name)
    sol = state.sol
    yield about.row("static", sol.gpu, "speed_of_light", "µs", sol.time_us)
    yield about.row("static", sol.gpu, "speed_of_light_memory", "µs", sol.memory_us)
    yield about.row("static", sol.gpu, "speed_of_light_compute", "µs", sol.compute_us)
    yield about.row("static", "", "compulsory_bytes", "bytes", float(sol.compulsory_bytes))
    workload = state.problem.workload
    for way, tensors in (("read", workload.inputs), ("written", workload.outputs)):
        nbytes = sum(spec.compulsory_bytes for spec in tensors)
        yield about.row("static", "", f"compulsory_bytes_{way}", "bytes", float(nbytes))
    yield about.row("static", "", "matrix_operations", "operations", float(sol.flops))


@dataclass(frozen=True)
class _Rows:
    """Makes rows about one candidate."""

    run: str
    candidate: str
    workload: str

    def row(
        self, source: Source, subject: str, metric: str, unit: str, value: float,
        low: float | None = None, high: float | None = None, kernel: str = "", workload: str = "",
    ) -> Row:  # fmt: skip
        where = workload or self.workload
        return Row(self.run, self.candidate, where, kernel, source, subject, metric, unit, float(value), low, high)

    def timing(self, timing: Timing) -> Iterator[Row]:
        """Times of the candidate and of the subjects timed with it, every sample, and the ratios."""
        source: Source = "timer" if timing.kind == "measured" else "emulator"
        ends = _interval(timing.time_us, timing.half_width_us)
        yield self.row(source, CANDIDATE, "time", "µs", timing.time_us, *ends)
        by = {m.subject: m for m in reversed(timing.measurements)}  # the first measurement of a subject has a cold L2
        for name, time_us in timing.baselines.items():
            ends = _interval(time_us, by[name].half_width_us if name in by else 0.0)
            yield self.row(source, name, "time", "µs", time_us, *ends)
        if timing.warm_us is not None:
            yield self.row(source, CANDIDATE, "time_warm_l2", "µs", timing.warm_us)
        for name, samples in timing.rounds_us.items():
            for time_us in samples:
                yield self.row(source, name, "time_round", "µs", time_us)
        for other in timing.comparisons:
            yield self.row(source, other.against, "time_ratio", "", other.ratio, other.low, other.high)

    def profile(self, profile: Profile, build: Build | None) -> Iterator[Row]:
        """Terms of the predicted time, then counters of the call, then those of each launch if there are several."""
        source = _SOURCES[profile.source]
        for name, us in terms_us(profile).items():
            yield self.row(source, name, "term", "µs", us)
        launched = [launch.kernel for launch in (build.plan.launches if build else profile.launches)]
        names = short_names(launched)
        yield from self._counters(source, profile.counters, names[launched[0]] if len(launched) == 1 else "")
        for launch in profile.launches:
            yield from self._counters(source, launch.counters, names.get(launch.kernel, launch.kernel))

    def _counters(self, source: Source, counters: Mapping[str, float], kernel: str) -> Iterator[Row]:
        for name, value in counters.items():
            if name.startswith("predicted_"):
                continue
            metric, _, subject = name.partition(":")
            yield self.row(source, subject, metric, _unit(metric), value, kernel=kernel)

    def checks(self, result: CheckResult) -> Iterator[Row]:
        for check in result.checks:
            yield from self._check(check)

    def _check(self, check: WorkloadCheck) -> Iterator[Row]:
        """Rows of a check: whether it passed; the largest error divided by the allowed error; each output's errors."""
        row, where, draw = self.row, check.workload, check.distribution
        yield row("judge", draw, "passed", "", float(check.verdict.passed), workload=where)
        if check.errors:
            share = max(max(_share(e.norm, e.limit_norm), _share(e.worst, e.limit_worst)) for e in check.errors)
            yield row("judge", draw, "error_over_budget", "", share, workload=where)
        for error in check.errors:
            for name in ("norm", "worst", "limit_norm", "limit_worst", "torch_norm", "torch_worst"):
                metric = f"error_{name}_of_{error.output}"
                yield row("judge", draw, metric, "", getattr(error, name), workload=where)

    def resources(self, resources: Resources) -> Iterator[Row]:
        """The largest resources of a candidate's kernels, if its build is not available."""
        yield self.row("static", "", "registers", "registers per thread", resources.registers)
        yield self.row("static", "", "spill_bytes", "bytes", resources.spill_bytes)
        yield self.row("static", "", "shared_memory", "bytes per block", resources.smem_bytes)


def _interval(value: float, half_width: float) -> tuple[float, float] | tuple[None, None]:
    """Ends of an interval; (None, None) if it is unknown, or infinite because there are too few samples."""
    known = 0 < half_width < math.inf
    return (value - half_width, value + half_width) if known else (None, None)


def _share(error: float, limit: float) -> float:
    """An error divided by its limit; infinite for any error if the limit is zero."""
    return error / limit if limit else (math.inf if error else 0.0)


def _unit(metric: str) -> str:
    if metric in COUNTERS:
        return COUNTERS[metric][0]
    if metric.endswith("_bytes"):
        return "bytes"
    return next((unit for prefix, unit in _PREFIXES.items() if metric.startswith(prefix)), "")

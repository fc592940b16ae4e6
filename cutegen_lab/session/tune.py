"""A search for a kernel's fastest config: connects search, timer, cage, cache, and the judge's final check."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from loky import cpu_count

from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import Cancelled, CutegenError, InputError
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Device, Say
from cutegen_lab.core.roofline import GpuSpec, target_gpu
from cutegen_lab.core.stopwatch import HasStopwatch
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.emulator.machine.blas import one_thread
from cutegen_lab.loop.services import Services
from cutegen_lab.session.config_timers import PredictedTimer, SearchTimer, timer_for
from cutegen_lab.session.factories import forks
from cutegen_lab.session.tuned import Row, Tunable, TuningResult
from cutegen_lab.session.versions import versions
from cutegen_lab.tuning import Evaluations, Place, Search, Space, key, read_tunables
from cutegen_lab.tuning.evaluations import Kind, source_key
from cutegen_lab.tuning.protocols import Limits
from cutegen_lab.tuning.space import brief
from cutegen_lab.tuning.trace import Trace, folded
from cutegen_lab.tuning.tuner import Tuner

CACHE = "tuning.jsonl"
PREDICTED = (24, 64)  # minimum and maximum number of configs predicted on the CPU for a GPU's search
_BY_CORE = 4  # configs predicted per core, within these limits
# Limits on the time of predictions: a fraction of the search's time limit, and a number of seconds.
_SHARE, _PREDICTING = 0.25, 60.0
_TIMED, _COMPILED = 0.2, 3.0  # third limit, the search's time: seconds to time a config, and to compile it on one core
_CHECKED = 6  # maximum number of configs checked, fastest first, until one is right; then the default


@dataclass(frozen=True)
class TuneSettings:
    """How to search."""

    limits: Limits = field(default_factory=Limits)
    """When the search ends."""
    arch: str = "sm_90a"
    """Target architecture."""
    gpu: str = ""
    """GPU to optimise for; empty for the first of ``arch``."""
    device: str = "auto"
    """Where configs are timed: "auto", "cuda", "cuda:N" or "emulator"."""
    seed: int = 0
    """Seed of the search."""


def from_template(problem: Problem, arch: str, seed: int = 0) -> Tunable:
    """The template for ``problem``, with the configs that serve every workload; stage counts beyond what fits are left
    out. Raises ProviderError if no family matches, InputError if no config fits."""
    from cutegen_lab.templates.recognise import template_for

    template = template_for(problem, arch)

    def runs(config: Config) -> bool:
        return template.feasible(config) and template.settled(config) == config

    space = Space.build(template.domains, template.settled(template.default_config()), runs, seed)
    return Tunable(f"the {template.name} template", template.write(space.default), space)


def from_text(source: str, carried: Config, name: str, seed: int = 0) -> Tunable:
    """A kernel's own TUNABLE; ``carried`` are the values in its file. Its constraints are evaluated in the cage, config
    by config. Raises InputError if there is nothing to search."""
    found = read_tunables(source)
    if unknown := [name for name in carried if name not in found.domains]:
        raise InputError(f"the file's config sets {', '.join(unknown)}, which TUNABLE does not name", "Correct it.")
    return Tunable(name, source, Space.build(found.domains, {**found.default, **carried}, seed=seed))


def tune(
    services: Services, problem: Problem, tunable: Tunable, settings: TuneSettings, say: Say,
    cancel: threading.Event | None = None,
) -> TuningResult:  # fmt: skip
    """Searches on the session's device, then has the judge check the fastest configs until one is right.

    Ctrl-C ends it with the results so far. Raises SetupError, CageError, StoreError.
    """
    return Tuning(services, problem, tunable, settings, say, cancel or threading.Event()).run()


class Tuning:
    """One search; :meth:`trace` may be called from other threads during :meth:`run`."""

    def __init__(
        self, services: Services, problem: Problem, tunable: Tunable, settings: TuneSettings, say: Say,
        cancel: threading.Event,
    ) -> None:  # fmt: skip
        self.services, self.problem, self.tunable, self.settings = services, problem, tunable, settings
        self.say, self.cancel = say, cancel
        self.gpu: GpuSpec = target_gpu(settings.arch, settings.gpu)
        self.device: Device = services.device(settings.device)
        self.cache = services.workdir / CACHE
        self._evaluated: dict[Kind, Evaluations] = {}

    def run(self) -> TuningResult:
        started = time.monotonic()
        search = Search(self.tunable.space, seed=self.settings.seed)
        sampled = ", a sample of them" if self.tunable.space.sampled else ""
        self.say(
            f"{self.tunable.what}: {len(self.tunable.space.configs)} of {self.tunable.space.total} configs{sampled}"
        )
        guide = self._predicting() if isinstance(self.device, HasStopwatch) else None
        try:
            with timer_for(self.problem, self.services.judge(), self.device, self.gpu, self.cancel, forks) as timer:
                tuner = self._tuner(search, timer, self.settings.limits)
                tuner.guide = guide
                tuner.limits = replace(tuner.limits, seconds=tuner.limits.seconds - (time.monotonic() - started))
                with one_thread():  # for small matrix products, while compilers use every core
                    tuner.run()
                found = TuningResult(self.tunable, timer.kind, timer.device, self.cache, tuner.stats)
        finally:
            if guide is not None:
                guide.end()
        found.ranked = tuner.ranked()
        found.leading = found.ranked[0] if found.ranked else None
        try:
            if not found.interrupted:
                self._judged(found, tuner)
        except (KeyboardInterrupt, Cancelled):
            self.cancel.set()
            tuner.stats.stopped = "interrupted"
        chosen = found.best or (found.leading[0] if found.leading else None)
        found.rows = [self._row(number, tuner, chosen) for number in range(len(self.problem.workloads))]
        return found

    def trace(self) -> Trace:
        """Everything evaluated so far, earlier searches included; measured times as soon as there are any."""
        signatures = [w.signature for w in self.problem.workloads]
        evaluated = dict(self._evaluated)
        points = {kind: list(folded(found, signatures)) for kind, found in evaluated.items()}
        predicted = {key(p.config): p.time_us for p in points.get("predicted", ()) if p.time_us is not None}
        kind: Kind = "measured" if points.get("measured") or "predicted" not in points else "predicted"
        mine = points.get(kind, [])
        ran = [replace(p, predicted_us=predicted.get(key(p.config))) if kind == "measured" else p
               for p in mine if not p.ruled_out]  # fmt: skip
        return Trace(
            self.tunable.what, kind, evaluated[kind].place.device if evaluated else "", self.tunable.space.domains,
            self.tunable.space.default, ran, len(mine) - len(ran), len(signatures),
        )  # fmt: skip

    # --- private ------------------------------------------------------------------------------------------------------

    def _tuner(self, search: Search, timer: SearchTimer, limits: Limits) -> Tuner:
        driver = f"{timer.driver}, nvidia-cutlass-dsl {versions()['nvidia-cutlass-dsl']}"
        place = Place(
            source_key(self.tunable.source, self.problem), self.settings.arch, timer.device, driver, timer.kind
        )
        evaluations = Evaluations(self.cache, place)
        if evaluations.damaged:
            self.say(f"{self.cache}: {evaluations.damaged} damaged lines were left out")
        self._evaluated[timer.kind] = evaluations
        return Tuner(
            self.tunable.source, self.settings.arch, self.problem.workloads, search,
            self.services.compiler(), timer, evaluations, self.say, self.cancel, cpu_count(), limits,
        )  # fmt: skip

    def _predicting(self) -> _Predicting:
        """Starts to predict configs on the CPU, chosen by a separate search for the minimum predicted time."""
        cancel = threading.Event()
        timer = PredictedTimer(self.problem, self.services.judge(), self.gpu, cancel, forks())
        search = Search(self.tunable.space, seed=self.settings.seed)
        whole = self.settings.limits
        count = min(PREDICTED[1], max(PREDICTED[0], _BY_CORE * cpu_count()))
        timing = whole.evaluations * (_TIMED + _COMPILED / cpu_count())
        seconds = min(whole.seconds * _SHARE, _PREDICTING, timing)
        limits = replace(whole, evaluations=count, seconds=seconds)
        self.say(f"predicting up to {count} configs on the CPU")
        tuner = self._tuner(search, timer, limits)
        tuner.cancel = cancel
        return _Predicting(tuner, timer, seconds)

    def _judged(self, found: TuningResult, tuner: Tuner) -> None:
        every = self.problem.built_for(self.services.workloads(self.problem, self.device))
        judge, compiler = self.services.judge(), self.services.compiler()
        quiet: Say = lambda _: None  # noqa: E731

        def compiled(config: Config, workloads: Sequence[Workload] = every) -> Artifact | CompileFailure:
            return compiler.compile(self.tunable.source, config, workloads, self.settings.arch, quiet, self.cancel)

        original = self.tunable.space.default
        default = compiled(original, [self.problem.workload])  # of the default, only the main workload is timed
        incumbent = default if isinstance(default, Artifact) else None
        ran = [config for config, _ in found.ranked]
        last = [original] if original in ran[_CHECKED:] else []  # the original config is a valid answer too
        for config in [*ran[:_CHECKED], *last]:
            self.say(f"checking {brief(config)}")
            artifact = compiled(config)
            if isinstance(artifact, CompileFailure):
                self._reject(found, tuner, config, artifact.verdict, artifact.reason)
                continue
            check = judge.check(self.problem, artifact, self.device, quiet, self.cancel)
            if not check.verdict.passed:
                self._reject(found, tuner, config, check.verdict, check.reason)
                continue
            against = incumbent if config != original else None
            timing, _ = judge.time(self.problem, artifact, self.device, self.gpu, quiet, self.cancel, against)
            if isinstance(timing, Fault):
                self._reject(found, tuner, config, timing.verdict, str(timing))
                continue
            found.best, found.check, found.timing = config, check, timing
            return

    def _reject(self, found: TuningResult, tuner: Tuner, config: Config, verdict: Verdict, reason: str) -> None:
        self.say(f"{brief(config)} is not taken: {verdict.value.replace('_', ' ')}, {reason}")
        found.rejected.append((config, verdict, reason))
        if verdict not in (Verdict.DEVICE_ERROR, Verdict.CANCELLED):
            tuner.reject(config, verdict, reason)

    def _row(self, number: int, tuner: Tuner, chosen: Config | None) -> Row:
        workload = self.problem.workloads[number]
        timed = [(t, i) for i, (c, _) in enumerate(tuner.ranked()) if (t := tuner.time_us(c, workload)) is not None]
        own_us, at = min(timed, default=(None, -1))
        return Row(
            workload.name, workload.describe(), tuner.time_us(self.tunable.space.default, workload),
            tuner.time_us(chosen, workload) if chosen is not None else None, own_us,
            tuner.ranked()[at][0] if at >= 0 else {},
        )  # fmt: skip


class _Predicting:
    """A search by predicted time on its own thread (a :class:`~cutegen_lab.tuning.tuner.Guide`), abandoned after
    ``seconds`` because the device is waiting."""

    def __init__(self, tuner: Tuner, timer: PredictedTimer, seconds: float) -> None:
        self._tuner, self._timer = tuner, timer
        self._up = threading.Timer(seconds, tuner.cancel.set)
        self._up.daemon = True
        self._up.start()
        self._thread = threading.Thread(target=self._work, name="cutegen-predictions", daemon=True)
        self._thread.start()

    def times_us(self) -> Mapping[str, float]:
        return {name: time_us for name, time_us in self._tuner.search.times_us.copy().items() if time_us}

    def finished(self) -> bool:
        return not self._thread.is_alive()

    def end(self) -> None:
        self._tuner.cancel.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            with closing(self._timer):
                self._tuner.run()
            self._up.cancel()
        except CutegenError as error:  # a search works without predictions
            self._tuner.say(f"no more predictions: {error}")

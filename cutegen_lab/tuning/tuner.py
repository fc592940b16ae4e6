"""Stage two of the two-stage tuner: searches on one device, compiles in advance, stores every evaluation, and ends when
little can be gained.

It uses a compiler and a timer through their protocols. The caller has the judge check the result.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.protocols import Compiler, Say
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.tuning.compile_queue import Compiled, CompileQueue
from cutegen_lab.tuning.evaluations import Evaluation, Evaluations
from cutegen_lab.tuning.protocols import ConfigTimer, Guide, Limits, SearchStats
from cutegen_lab.tuning.search import Search
from cutegen_lab.tuning.space import brief, key
from cutegen_lab.tuning.trace import averaged, geometric

QUICK, CAREFUL = 3, 12  # samples of every config, and of a config close to the best
_RULED_OUT = (
    8  # limit on configs ruled out per evaluation of the budget: a mostly infeasible space is not compiled whole
)
_CLOSE = 1.10  # configs within this factor of the best are sampled further
_ENOUGH = 60  # maximum number of samples per config: more do not separate close configs
_LEAST_WORTH = 0.5  # smallest assumed fraction of compiled configs that are worth timing
_PREPARED = 0.75  # fraction of the budget compiled before timing begins, if predictions guide the search
_OURS = (Verdict.DEVICE_ERROR, Verdict.CANCELLED)  # verdicts that say nothing about the config


@dataclass
class Tuner:
    """Compiles ``source`` with each config and times it on all of ``workloads``; a config's time is the geometric
    mean."""

    source: str
    """Text of the kernel."""
    arch: str
    """Target architecture."""
    workloads: Sequence[Workload]
    """Workloads to time."""
    search: Search
    """Chooses the configs."""
    compiler: Compiler
    """Compiles them."""
    timer: ConfigTimer
    """Times them."""
    cache: Evaluations
    """Stores evaluations."""
    say: Say
    """Receives progress lines."""
    cancel: threading.Event
    """Ends the search."""
    workers: int = 2
    """Configs compiled at a time."""
    limits: Limits = field(default_factory=Limits)
    """When the search ends."""
    guide: Guide | None = None
    """Predictions that arrive while the search runs; None without any."""
    stats: SearchStats = field(default_factory=SearchStats)
    """Counts and durations so far."""
    _artifacts: dict[str, Artifact] = field(default_factory=dict)
    _samples: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # samples by config and workload

    def __post_init__(self) -> None:
        self._order = list(self.workloads)  # workloads, beginning with the one that the timer has prepared
        self._batch = self.limits.batch * (len(self.workloads) if self.timer.changes else 1)
        self._ready: list[tuple[Config, Artifact]] = []  # configs that are compiled and worth timing
        self._begun: float | None = None  # when the timer was first asked for more than the default
        self._busy_before = 0.0  # seconds that the timer had taken before that
        # Maximum number of configs that are compiled ahead of the timer.
        self._depth = self._batch + -(-self.workers // len(self.workloads))

    def run(self) -> SearchStats:
        """Searches until budget, time or expected gain is used up. Ctrl-C ends it with what is known (``stopped`` is
        "interrupted") and sets :attr:`cancel`. Raises CageError, SetupError, StoreError."""
        started = time.monotonic()
        self._recall()
        if self.guide:
            self._depth = max(self._depth, math.ceil(_PREPARED * self._left(0)))
        queue = CompileQueue(
            self.source, self.arch, self.workloads, self.compiler, self.timer, self.search.space.default,
            self.cancel, self.workers,
        )  # fmt: skip
        try:
            self.stats.stopped = self._loop(queue, started)
            self._final(queue)
        except (KeyboardInterrupt, Cancelled):
            self.cancel.set()
            self.stats.stopped = "interrupted"
        finally:
            ended = time.monotonic()
            begun = self._begun or ended
            self.stats.prepare_seconds, self.stats.search_seconds = begun - started, ended - begun
            self.stats.busy_seconds = self.timer.busy_seconds - self._busy_before
            queue.close()
        return self.stats

    def ranked(self) -> list[tuple[Config, float]]:
        """Configs that ran, fastest first; those of the interleaved timing come first, by its times."""
        final = sorted(self.stats.in_turns.values(), key=lambda found: found[1])
        rest = ((c, t) for c in self.search.space.configs if (t := self.search.times_us.get(key(c))) is not None)
        return [*final, *sorted((f for f in rest if key(f[0]) not in self.stats.in_turns), key=lambda found: found[1])]

    def time_us(self, config: Config, workload: Workload) -> float | None:
        found = self.cache.get(config, workload.signature)
        return found.time_us if found else None

    def reject(self, config: Config, verdict: Verdict, reason: str) -> None:
        """Records that the judge found a config wrong, so that no later search takes it for the fastest."""
        self.search.tell(config, None)
        self.stats.in_turns.pop(key(config), None)
        self.cache.add(Evaluation(config, self.workloads[0].signature, None, 1, verdict.value, reason))

    # --- private ------------------------------------------------------------------------------------------------------

    def _recall(self) -> None:
        """Tells the search what earlier searches found."""
        for config in self.search.space.configs:
            found = [e for w in self.workloads if (e := self.cache.get(config, w.signature))]
            if bad := next((e for e in found if e.failure), None):
                self._failed(config, bad.ruled_out, count=0)
                self.stats.from_cache += not bad.ruled_out
            elif len(found) == len(self.workloads):
                self.search.tell(config, geometric([e.time_us for e in found if e.time_us]))
                self.stats.from_cache += 1
        if self.stats.from_cache:
            self.say(f"{self.stats.from_cache} configs were evaluated before")

    def _loop(self, queue: CompileQueue, started: float) -> str:
        """Times compiled configs while others compile; if none is ready, samples the best again.

        While predictions arrive, only the default config is compiled and timed, for comparison. With predictions,
        timing continues when all requested configs are compiled; ready ones are loaded while the last of them compile.
        """
        while True:
            guided = self._take_predictions()
            self._queue(queue, (0 if self.search.times_us else 1) if guided else self._depth)
            if self._left(0) <= 0:
                return "the budget is used up"
            if not queue and not self._ready and not guided:
                return self._over()
            if self.stats.ruled_out >= _RULED_OUT * self.limits.evaluations:
                advice = "narrow TUNABLE's domains" if self.stats.evaluated else "does constraints() allow any?"
                return f"{self.stats.ruled_out} configs were ruled out: {advice}"
            if time.monotonic() - started > self.limits.seconds:
                return "the time is up"
            if self.cancel.is_set():
                raise Cancelled()
            if self._begun is None and guided and self._ready:
                self._evaluate(self._batch_of(queue))
                self._busy_before = self.timer.busy_seconds
            if self._begun is None and not guided:
                if self.guide and len(queue) <= self.workers:
                    self.timer.open({key(c): a for c, a in self._ready})
                if not (self.guide and queue):
                    self._begin(started)
            if self._begun and (batch := self._batch_of(queue)):
                self._evaluate(batch)
            elif not self._begun or not self._sample_more():
                queue.rest()

    def _over(self) -> str:
        """Why the search requests no more configs although it has budget left."""
        if self.search.untried:
            return "no further gain is expected"
        if not self.search.times_us:
            return f"all {len(self.search.space.configs)} configs were ruled out: does constraints() allow any?"
        return "every config was tried"

    def _take_predictions(self) -> bool:
        """Passes new predictions to the search. Returns whether more may come."""
        if self.guide is None:
            return False
        coming = not self.guide.finished()
        if len(known := dict(self.guide.times_us())) > len(self.search.predicted_us):
            self.search.predict(known)
        return coming

    def _left(self, waiting: int) -> int:
        return self.limits.evaluations - self.stats.evaluated - self.stats.from_cache - waiting

    def _queue(self, queue: CompileQueue, depth: int) -> None:
        """Keeps ``depth`` configs compiling or waiting for the timer, allowing for those that will be ruled out."""
        self._ready += [(c, a) for c, outcome in queue.take() if (a := self._settled(c, outcome)) is not None]
        while (wanted := min(depth - (waiting := self._coming(queue)), self._left(waiting))) > 0:
            asked = self.search.ask(wanted)
            queue.ask(asked)
            if not asked:
                return

    def _coming(self, queue: CompileQueue) -> int:
        """Expected number of requested configs that will reach the timer, at the rate so far. A few too many are
        acceptable: an idle device costs more than a compilation."""
        worth = self.stats.evaluated + len(self._ready)
        share = worth / (worth + self.stats.ruled_out) if worth and self.timer.repeats else 1.0
        return len(self._ready) + int(len(queue) * max(share, _LEAST_WORTH))

    def _begin(self, started: float) -> None:
        self._begun = time.monotonic()
        if self.guide:
            self.say(f"prepared in {self._begun - started:.1f} s; timing begins")

    def _batch_of(self, queue: CompileQueue) -> list[tuple[Config, Artifact]]:
        """Configs that are ready, at most a batch. If the timer takes time to change workloads, empty until the batch
        is full or nothing is being compiled."""
        if self.timer.changes and queue and len(self._ready) < self._batch:
            return []
        count = min(self._batch, self._left(0))
        batch, self._ready = self._ready[:count], self._ready[count:]
        return batch

    def _sample_more(self) -> bool:
        """Uses idle time while compilers work: samples the close config with the fewest samples again."""
        best = self.search.best
        if not self.timer.repeats or best is None:
            return False
        close = {n: t for n, t in self.search.times_us.items() if t is not None and t < _CLOSE * best[1]}
        workload = self._order[0]
        counts = {n: len(self._samples.get((n, workload.signature), ())) for n in close if n in self._artifacts}
        name = min(counts, key=lambda n: counts[n], default="")
        if not name or counts[name] >= _ENOUGH:
            return False
        config = self._artifacts[name].config
        for timed in self._timed({name: config}, self._artifacts, CAREFUL, [workload]):
            self._tell(timed)
        return True

    def _settled(self, config: Config, outcome: Compiled) -> Artifact | None:
        """The artifact if it is worth timing; otherwise None."""
        if isinstance(outcome, Artifact):
            return outcome
        if isinstance(outcome, CompileFailure):
            verdict, reason, out = outcome.verdict.value, outcome.reason, outcome.ruled_out
        else:
            verdict, reason, out = "unpromising", outcome, True
        self.cache.add(Evaluation(config, self.workloads[0].signature, None, 0, verdict, reason, out))
        if not out:
            self.say(f"{brief(config)}: {verdict.replace('_', ' ')}, {reason}")
        elif not self.stats.ruled_out:
            self.say(f"the first config that is ruled out: {brief(config)}, {reason}")
        self._failed(config, out)
        return None

    def _failed(self, config: Config, ruled_out: bool, count: int = 1) -> None:
        if ruled_out:
            self.search.rule_out(config)
            self.stats.ruled_out += count
        else:
            self.search.tell(config, None)
            self.stats.failed += count
            self.stats.evaluated += count

    def _evaluate(self, ready: Sequence[tuple[Config, Artifact]]) -> None:
        artifacts = {key(c): a for c, a in ready}
        configs = {key(c): c for c, _ in ready}
        for config in self._timed(configs, artifacts, QUICK if self.timer.repeats else 1):
            time_us = self._tell(config)
            self.stats.evaluated += 1
            best = self.search.best
            least = f"; best {best[1]:.1f} µs" if best else ""
            several = averaged(len(self.workloads))
            self.say(f"{self.stats.evaluated + self.stats.from_cache}/{self.limits.evaluations} {brief(config)}: "
                     f"{time_us:.1f} µs {self.timer.kind}{least}{several}")  # fmt: skip
        if self.timer.repeats and (best := self.search.best):
            near = {n: c for n, c in configs.items() if (self.search.times_us.get(n) or math.inf) < _CLOSE * best[1]}
            for config in self._timed(near, artifacts, CAREFUL):
                self._tell(config)
        self._artifacts.update((n, a) for n, a in artifacts.items() if self.search.times_us.get(n) is not None)

    def _timed(
        self, configs: Mapping[str, Config], artifacts: Mapping[str, Artifact], samples: int,
        workloads: Sequence[Workload] | None = None,
    ) -> Iterator[Config]:  # fmt: skip
        """Configs that ran on every workload; results go to the cache. The next call starts with the last workload."""
        left, order = dict(configs), list(workloads or self._order)
        if not workloads:
            self._order.reverse()
        for workload in order:
            for name, times in self.timer.time(workload, {n: artifacts[n] for n in left}, samples):
                if isinstance(times, Fault):
                    self._faulty(left.pop(name), workload, times)
                    continue
                every = self._samples.setdefault((name, workload.signature), [])
                every.extend(times)
                self.cache.add(Evaluation(left[name], workload.signature, median(every), len(every)))
                if workload is order[-1]:
                    yield left[name]

    def _faulty(self, config: Config, workload: Workload, fault: Fault) -> None:
        self.say(f"{brief(config)}: {fault.verdict.value.replace('_', ' ')}, {fault}")
        self._failed(config, ruled_out=False)
        if fault.verdict not in _OURS:
            failed = Evaluation(config, workload.signature, None, 1, fault.verdict.value, str(fault))
            self.cache.add(failed)

    def _tell(self, config: Config) -> float:
        mean = geometric([t for w in self.workloads if (t := self.time_us(config, w)) is not None])
        self.search.tell(config, mean)
        return mean

    def _final(self, queue: CompileQueue) -> None:
        """Interleaved re-timing of the finalists and the default, workload by workload."""
        if not self.timer.repeats:
            return
        few = [config for config, _ in self.ranked()[: self.limits.finalists]]
        default = self.search.space.default
        if default not in few and self.search.times_us.get(key(default)) is not None:
            few.append(default)
        if len(few) < 2:
            return
        self.say(f"timing the best {len(few)} in turns")
        missing = [c for c in few if key(c) not in self._artifacts]
        for config, outcome in zip(missing, queue.now(missing), strict=True):
            if isinstance(outcome, Artifact):
                self._artifacts[key(config)] = outcome
        chosen = {key(c): self._artifacts[key(c)] for c in few if key(c) in self._artifacts}
        logs: dict[str, list[float]] = {name: [] for name in chosen}
        for workload in self.workloads:
            for name, times in self.timer.time_interleaved(workload, chosen):
                logs[name].append(median(times))
                config = few[[key(c) for c in few].index(name)]
                self.cache.add(Evaluation(config, workload.signature, median(times), len(times)))
        for config in few:
            if len(times_us := logs.get(key(config), [])) == len(self.workloads):
                self.stats.in_turns[key(config)] = (config, geometric(times_us))

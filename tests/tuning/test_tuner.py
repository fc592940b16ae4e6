"""The loop around a search, with a compiler and a timer that answer from a table."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cutegen_lab.core.artifact import Artifact, Build, CompileFailure, KernelInfo, Launch, LaunchPlan
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.protocols import Cancel, Say
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.tuning import Evaluations, Place, Search, Space, key
from cutegen_lab.tuning.evaluations import Kind
from cutegen_lab.tuning.protocols import Limits
from cutegen_lab.tuning.tuner import Tuner

SPACE = Space.build({"vec": (1, 2, 4, 8), "threads": (64, 128, 256, 512)}, {"vec": 1, "threads": 64})
SMALL, LARGE = (
    Workload(name, (TensorSpec("x", DType.F32, (n,)),), (TensorSpec("y", DType.F32, (n,)),))
    for name, n in (("small", 1024), ("large", 4096))
)
PLACE = Place("a" * 64, "sm_90a", "a card", "1.0", "measured")


def time_us(config: Config, workload: Workload) -> float:
    vec, threads = int(config["vec"]), int(config["threads"])
    best = 2 if workload is SMALL else 8
    return 10.0 + abs(vec - best) + abs(threads - 256) / 64


def build(workload: Workload, registers: int = 32, spilled: int = 0) -> Build:
    kernel = KernelInfo("k", registers, spilled, 0, 0, 0, ())
    launch = Launch("k", (8, 1, 1), (1024, 1, 1), (1, 1, 1), 0, (), ())
    return Build(workload.signature, "sm_90a", b"", "", (kernel,), LaunchPlan((launch,)))


@dataclass
class Compiler:
    """``refused``: a verdict, "ruled out" or "spills" by config."""

    refused: Mapping[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def compile(
        self, source: str, config: Config, workloads: Sequence[Workload], arch: str, say: Say, cancel: Cancel
    ) -> Artifact | CompileFailure:
        self.asked.append(key(config))
        why = self.refused.get(key(config), "")
        if why == "ruled out":
            return CompileFailure(Verdict.CONTRACT, "constraints() rules it out", ruled_out=True)
        if why == "fails":
            return CompileFailure(Verdict.COMPILE_ERROR, "no such name")
        builds = {w.name: build(w, spilled=4096 if why == "spills" else 0) for w in workloads}
        return Artifact("a" * 64, config, arch, "1", builds)


@dataclass
class ConfigTimer:
    """``faults`` by config; after ``stop_after`` timings it is as if Ctrl-C were pressed."""

    kind: Kind = "measured"
    repeats: bool = True
    changes: bool = False
    busy_seconds: float = 0.0
    faults: Mapping[str, Verdict] = field(default_factory=dict)
    stop_after: int = 1000
    timed: list[tuple[str, str, int]] = field(default_factory=list)
    prepared: list[str] = field(default_factory=list)
    opened: list[float] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)

    def prepare(self, workloads: Sequence[Workload], name: str, artifact: Artifact) -> None:
        self.prepared.append(name)

    def open(self, artifacts: Mapping[str, Artifact]) -> None:
        self.opened.append(time.monotonic())
        self.loaded |= artifacts.keys()

    def time(
        self, workload: Workload, artifacts: Mapping[str, Artifact], samples: int
    ) -> Iterator[tuple[str, Sequence[float] | Fault]]:
        for name, artifact in artifacts.items():
            if len(self.timed) >= self.stop_after:
                raise KeyboardInterrupt
            self.timed.append((name, workload.name, samples))
            found = time_us(artifact.config, workload)
            yield name, Fault(self.faults[name], "broken") if name in self.faults else (found,) * samples

    def time_interleaved(
        self, workload: Workload, artifacts: Mapping[str, Artifact]
    ) -> Iterator[tuple[str, Sequence[float]]]:
        for name, artifact in artifacts.items():
            yield name, (time_us(artifact.config, workload),) * 16


def tuner(
    path: Path, timer: ConfigTimer | None = None, compiler: Compiler | None = None, limits: Limits | None = None,
    workloads: Sequence[Workload] = (SMALL,), said: list[str] | None = None,
) -> Tuner:  # fmt: skip
    return Tuner(
        "text", "sm_90a", workloads, Search(SPACE), compiler or Compiler(), timer or ConfigTimer(),
        Evaluations(path / "tuning.jsonl", PLACE), (said if said is not None else []).append, threading.Event(), 2,
        limits or Limits(evaluations=16, batch=2),
    )  # fmt: skip


def test_it_finds_the_fastest_and_times_the_best_in_turns(tmp_path: Path) -> None:
    tuning, said = tuner(tmp_path), list[str]()
    tuning.say = said.append
    tally = tuning.run()
    assert tuning.ranked()[0] == ({"vec": 2, "threads": 256}, pytest.approx(10.0))
    assert 8 <= tally.evaluated <= 16 and tally.failed == 0
    assert key(SPACE.default) in tally.in_turns and len(tally.in_turns) == 5  # the best four and the default
    assert any("timing the best" in line for line in said) and any("µs measured" in line for line in said)


def test_only_what_stays_in_the_race_is_sampled_often(tmp_path: Path) -> None:
    timer = ConfigTimer()
    tuner(tmp_path, timer).run()
    quick = {name for name, _, samples in timer.timed if samples == 3}
    careful = {name for name, _, samples in timer.timed if samples == 12}
    assert careful < quick and key({"vec": 2, "threads": 256}) in careful


def test_the_budget_and_the_clock_end_it(tmp_path: Path) -> None:
    tally = tuner(tmp_path / "a", limits=Limits(evaluations=5, batch=2)).run()
    assert tally.evaluated == 5 and tally.stopped == "the budget is used up"
    tally = tuner(tmp_path / "b", limits=Limits(seconds=0.0)).run()
    assert tally.evaluated == 0 and tally.stopped == "the time is up"


def test_it_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    first = tuner(tmp_path, ConfigTimer(stop_after=5))
    assert first.run().stopped == "interrupted" and first.cancel.is_set()
    known = len(list(first.cache))
    assert known >= 2 and first.ranked()
    with (tmp_path / "tuning.jsonl").open("a") as file:
        file.write('{"half a li')
    timer = ConfigTimer()
    tally = (second := tuner(tmp_path, timer)).run()
    assert tally.from_cache == known and tally.from_cache + tally.evaluated <= 16
    assert {name for name, *_ in timer.timed}.isdisjoint({key(e.config) for e in first.cache})
    assert second.cache.damaged == 1 and second.ranked()[0][0] == {"vec": 2, "threads": 256}
    third = ConfigTimer()
    assert tuner(tmp_path, third).run().evaluated + tally.evaluated <= 16 - known
    assert len(third.timed) <= 16 - known - tally.evaluated


def test_failures_are_kept_and_counted(tmp_path: Path) -> None:
    wide = {key(c): "fails" for c in SPACE.configs if c["vec"] == 8}
    hangs = {key(c): Verdict.HANG for c in SPACE.configs if c["threads"] == 512}
    tuning = tuner(tmp_path, ConfigTimer(faults=hangs), Compiler(wide))
    tally = tuning.run()
    assert tally.failed and tuning.ranked()[0][0] == {"vec": 2, "threads": 256}
    failures = {e.failure for e in tuning.cache if e.failure}
    assert failures <= {"hang", "compile_error"} and failures
    compiler = Compiler(wide)
    tuner(tmp_path, ConfigTimer(faults=hangs), compiler).run()
    assert not {key(e.config) for e in tuning.cache if e.failure} & set(compiler.asked)


def test_what_is_ruled_out_costs_no_evaluation(tmp_path: Path) -> None:
    refused = {key(c): "ruled out" if c["vec"] == 4 else "spills" for c in SPACE.configs if int(c["vec"]) >= 4}
    tuning = tuner(tmp_path, compiler=Compiler(refused))
    tally = tuning.run()
    assert tally.ruled_out and tally.evaluated <= 8 and all(int(c["vec"]) < 4 for c, _ in tuning.ranked())
    reasons = {e.reason for e in tuning.cache if e.ruled_out}
    assert reasons <= {"constraints() rules it out", "4096 B per thread are spilled"}


def test_an_infeasible_space_ends(tmp_path: Path) -> None:
    refused = dict.fromkeys(map(key, SPACE.configs), "ruled out")
    tally = (tuning := tuner(tmp_path / "a", compiler=Compiler(refused))).run()
    assert tally.evaluated == 0 and tally.ruled_out == 16 and not tuning.ranked()
    assert tally.stopped == "all 16 configs were ruled out: does constraints() allow any?"
    tally = tuner(tmp_path / "b", compiler=Compiler(refused), limits=Limits(evaluations=1)).run()
    assert tally.ruled_out < 16 and "does constraints() allow any?" in tally.stopped


def test_a_device_that_breaks_is_not_held_against_the_config(tmp_path: Path) -> None:
    first = tuner(tmp_path, ConfigTimer(faults=dict.fromkeys(map(key, SPACE.configs), Verdict.DEVICE_ERROR)))
    first.run()
    assert not list(first.cache)
    assert tuner(tmp_path).run().evaluated > 0


def test_one_config_for_all_workloads(tmp_path: Path) -> None:
    said = list[str]()
    tuning = tuner(tmp_path, workloads=(SMALL, LARGE), said=said)
    tuning.run()
    assert any(line.endswith("µs (geometric mean of 2 workloads)") for line in said)
    best = tuning.ranked()[0][0]
    assert best["threads"] == 256 and 2 <= int(best["vec"]) <= 8
    assert tuning.time_us(best, SMALL) == time_us(best, SMALL)
    assert tuning.time_us(best, LARGE) == time_us(best, LARGE)


def test_the_clock_changes_between_workloads_as_seldom_as_it_can(tmp_path: Path) -> None:
    timer = ConfigTimer(changes=True)
    tally = tuner(tmp_path, timer, workloads=(SMALL, LARGE)).run()
    changes = sum(one[1] != other[1] for one, other in zip(timer.timed, timer.timed[1:], strict=False))
    assert tally.evaluated > 8 and changes <= tally.evaluated


def test_what_the_judge_rejects_is_never_the_best_again(tmp_path: Path) -> None:
    tuning = tuner(tmp_path)
    tuning.run()
    wrong = tuning.ranked()[0][0]
    tuning.reject(wrong, Verdict.WRONG_RESULT, "out[3] is 4")
    assert wrong not in [c for c, _ in tuning.ranked()]
    again = tuner(tmp_path)
    again.run()
    assert wrong not in [c for c, _ in again.ranked()]


def test_predictions_are_taken_once(tmp_path: Path) -> None:
    timer = ConfigTimer(kind="predicted", repeats=False)
    tally = tuner(tmp_path, timer).run()
    assert {samples for *_, samples in timer.timed} == {1} and not tally.in_turns


@pytest.mark.parametrize(("registers", "spilled", "why"), [(32, 0, ""), (255, 0, "do not fit"), (32, 999, "spilled")])
def test_what_the_compilers_figures_rule_out(registers: int, spilled: int, why: str) -> None:
    from cutegen_lab.tuning.unpromising import unpromising

    assert why in unpromising(build(SMALL, registers, spilled), "sm_90a")


@dataclass
class SlowCompiler(Compiler):
    """Notes when it was at work."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    def compile(self, *asked: Any, **more: Any) -> Artifact | CompileFailure:
        started = time.monotonic()
        time.sleep(0.03)
        found = super().compile(*asked, **more)
        self.spans.append((started, time.monotonic()))
        return found


@dataclass
class SlowTimer(ConfigTimer):
    """Takes 2 ms a sample."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    def time(
        self, workload: Workload, artifacts: Mapping[str, Artifact], samples: int
    ) -> Iterator[tuple[str, Sequence[float] | Fault]]:
        for name, artifact in artifacts.items():
            started = time.monotonic()
            time.sleep(0.002 * samples)
            self.spans.append((started, time.monotonic()))
            self.busy_seconds += self.spans[-1][1] - started
            yield name, (time_us(artifact.config, workload),) * samples


def test_the_clock_works_while_the_rest_compiles(tmp_path: Path) -> None:
    timer, compiler = SlowTimer(), SlowCompiler()
    tuning = tuner(tmp_path, timer, compiler)
    tally = tuning.run()
    beside = sum(any(a < end and start < b for a, b in timer.spans) for start, end in compiler.spans)
    assert beside >= len(compiler.spans) // 2 and 0.5 < tally.busy <= 1.0
    best = tuning.cache.get(tuning.ranked()[0][0], SMALL.signature)
    assert best is not None and best.samples >= 15  # quick, careful, and more while there was nothing new to time


@dataclass
class Guided:
    """Predictions come one by one; the last ones make another config look best."""

    asked: int = 0

    def times_us(self) -> Mapping[str, float]:
        self.asked += 1
        return {key(c): time_us(c, SMALL) for c in SPACE.configs[: 2 * self.asked]}

    def finished(self) -> bool:
        return 2 * self.asked >= len(SPACE.configs)


def test_predictions_come_while_the_search_goes_on(tmp_path: Path) -> None:
    timer = ConfigTimer()
    tuning = tuner(tmp_path, timer, limits=Limits(evaluations=3, batch=1))
    tuning.guide = Guided()
    tuning.run()
    first = list(dict.fromkeys(name for name, *_ in timer.timed))
    assert first[:2] == [key(SPACE.default), key({"vec": 2, "threads": 256})]


def test_a_clock_that_predictions_lead_begins_when_most_is_compiled(tmp_path: Path) -> None:
    timer, compiler, said = SlowTimer(), SlowCompiler(), list[str]()
    tuning = tuner(tmp_path, timer, compiler, Limits(evaluations=8, batch=2), said=said)
    tuning.guide = Guided(asked=6)
    tally = tuning.run()
    default, begun = timer.spans[0], next(a for a, _ in timer.spans if sum(end <= a for _, end in compiler.spans) > 1)
    assert sum(end <= default[0] for _, end in compiler.spans) == 1, "the default is timed as soon as it is compiled"
    assert sum(end <= begun for _, end in compiler.spans) >= 6 and tally.evaluated == 8
    after = sum(end - start for start, end in timer.spans if start >= begun)
    assert tally.prepare_seconds >= 3 * 0.03 and tally.busy == pytest.approx(after / tally.search_seconds)
    assert any(line.startswith("prepared in") for line in said)
    ends = sorted(end for _, end in compiler.spans if end <= begun)
    assert timer.loaded and timer.loaded <= set(timer.prepared)
    assert ends[0] < timer.opened[0] < ends[-1], "the device is taken while the last configs compile, not before"


@pytest.mark.parametrize("repeats", [True, False])
def test_where_configs_are_ruled_out_more_compile_than_the_clock_needs(tmp_path: Path, repeats: bool) -> None:
    """A device that waits costs more than a compilation; a model's timer has none that waits. The budget holds."""
    refused = {key(c): "ruled out" for c in SPACE.configs if c["threads"] in (128, 512)}
    timer, compiler = ConfigTimer(repeats=repeats), SlowCompiler(refused)
    tally = tuner(tmp_path, timer, compiler, Limits(evaluations=6, batch=1)).run()
    assert tally.evaluated == 6 == len({name for name, *_ in timer.timed}) and tally.ruled_out
    surplus = len(set(compiler.asked)) - tally.evaluated - tally.ruled_out
    assert 0 < surplus <= 6 if repeats else surplus == 0

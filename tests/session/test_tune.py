"""A search on a GPU that is not there: predictions first, cold samples, turns, and the judge's last word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.trial import CheckResult, Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.session import Session
from cutegen_lab.session.simulate import simulate
from cutegen_lab.session.tune import CACHE, TuneSettings, from_text, tune
from cutegen_lab.session.tuned import Tunable
from cutegen_lab.tuning import Space, key
from cutegen_lab.tuning.protocols import Limits
from tests.judge.fake_stopwatch import FakeStopwatch
from tests.session.test_config_timers import PROBLEM, double
from tests.tuning.test_tuner import SPACE, Compiler


class Here:
    """Predicts in the searching process: another takes seconds to start (``test_config_timers`` has one)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: object, cancelled: Callable[[], bool]) -> Any:
        return self._function(*arguments)

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def predictions_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cutegen_lab.session.tune.forks", lambda: SimpleNamespace(fork=Here))


TUNABLE = Tunable("a table", "text", SPACE)
WRONG = {"vec": 2, "threads": 256}


def true_us(config: Config) -> float:
    return 10.0 + abs(int(config["vec"]) - 2) + abs(int(config["threads"]) - 256) / 64


@dataclass
class Judge:
    """Finds the configs in ``wrong`` wrong and those in ``faulty`` faulty when timed; its emulator is off by half."""

    wrong: tuple[Config, ...] = ()
    faulty: tuple[Config, ...] = ()
    checked: list[Config] = field(default_factory=list)

    def check(self, problem: Any, artifact: Artifact, device: Any, say: Any, cancel: Any) -> CheckResult:
        self.checked.append(artifact.config)
        verdict = Verdict.WRONG_RESULT if artifact.config in self.wrong else Verdict.PASSED
        return CheckResult(verdict, "as the table says", ())

    def time(
        self, problem: Any, artifact: Artifact, device: Any, gpu: Any, say: Any, cancel: Any, incumbent: Any = None
    ) -> tuple[Timing | Fault, None]:
        if device.kind == "emulator":
            return Timing("predicted", 1.5 * true_us(artifact.config), "a table", "H200"), None
        if artifact.config in self.faulty:
            return Fault(Verdict.TOO_FAST, "under the floor"), None
        return Timing("measured", true_us(artifact.config), "a table", device.name), None


def search(
    place: Path, judge: Judge, said: list[str], budget: int = 16, tunable: Tunable = TUNABLE, **watch: Any
) -> Any:  # fmt: skip
    times: Mapping[str, float] = {key(c): true_us(c) for c in SPACE.configs}
    device = FakeStopwatch(double, times, noise=1e-5, **watch)
    with Session.open(place, compiler=Compiler(), judge=judge, device=lambda kind: device) as session:  # type: ignore[arg-type]
        return tune(session.services, PROBLEM, tunable, TuneSettings(Limits(budget, batch=2, finalists=6)), said.append)


@pytest.mark.parametrize("judge", [Judge(), Judge(wrong=(WRONG,)), Judge(faulty=(WRONG,))])
def test_the_fastest_that_is_right(tmp_path: Path, judge: Judge) -> None:
    said: list[str] = []
    found = search(tmp_path, judge, said)
    wrong = bool(judge.wrong or judge.faulty)
    assert (
        found.kind == "measured"
        and '"kind":"predicted"' in (tmp_path / CACHE).read_text()
        and found.timing.kind == "measured"
    )
    assert (found.best == WRONG) != wrong and [c for c, *_ in found.rejected] == [WRONG] * wrong
    assert found.check.verdict.passed and judge.checked[-1] == found.best
    assert [row.workload for row in found.rows] == [w.name for w in PROBLEM.workloads]
    assert found.rows[0].default_us == pytest.approx(true_us(SPACE.default), rel=0.01)
    assert any("predicting up to" in line for line in said) and any("in turns" in line for line in said)
    if wrong:
        again = search(tmp_path, Judge(), [], budget=20)
        assert again.best != WRONG and again.stats.from_cache


def test_nothing_right(tmp_path: Path) -> None:
    found = search(tmp_path, Judge(wrong=tuple(SPACE.configs)), [])
    assert found.best is None and found.timing is None
    assert 6 <= len(found.rejected) <= 7 and SPACE.default in [config for config, *_ in found.rejected]


def test_where_all_that_is_faster_is_wrong_the_default_is_the_answer(tmp_path: Path) -> None:
    slowest = Tunable("a table", "text", Space.build(SPACE.domains, {"vec": 8, "threads": 512}))
    judge = Judge(wrong=tuple(c for c in SPACE.configs if c != slowest.space.default))
    found = search(tmp_path, judge, [], tunable=slowest)
    assert found.best == slowest.space.default and len(found.rejected) == 6


def test_what_was_recorded_is_replayed(tmp_path: Path) -> None:
    search(tmp_path, Judge(), [])
    found = simulate(tmp_path / CACHE, PROBLEM, TUNABLE, TuneSettings())
    assert found.place.kind == "measured" and found.configs >= 8
    assert found.near is not None and found.near <= 4 and found.best_us == pytest.approx(10.0, rel=0.01)


def test_a_files_config_is_where_the_search_begins() -> None:
    source = 'TUNABLE = {"vec": (2, 4)}\ndef launch(x, y, stream, vec: Constexpr = 2):\n    pass\n'
    assert from_text(source, {"vec": 4}, "k.py").space.default == {"vec": 4}
    with pytest.raises(Exception, match="sets threads, which TUNABLE does not name"):
        from_text(source, {"threads": 4}, "k.py")

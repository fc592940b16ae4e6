"""Runs of a suite with scripted services: outcomes, and what is run again."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.core.cost import Price
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.run import Budget, RunSettings, Step
from cutegen_lab.session import RunHandle, Session
from cutegen_lab.suite.files import problem_files
from cutegen_lab.suite.purse import Purse
from cutegen_lab.suite.record import Row
from cutegen_lab.suite.runner import SuiteRun, usual_jobs
from tests.loop.scripted import ScriptedCompiler, ScriptedDevice, ScriptedJudge, ScriptedProvider

SETTINGS = RunSettings(provider="replay:script", device="emulator", auto=True, budget=Budget(max_steps=2, max_fixes=1))


class Scripts:
    """Sources by problem; counts proposals."""

    def __init__(self, session_folder: Path, **sources: list[str]) -> None:
        self.folder, self.sources = session_folder, sources
        self.providers: list[ScriptedProvider] = []
        self.errors: list[str] = []
        self.begun: list[str] = []

    def provider(self, settings: RunSettings) -> ScriptedProvider:
        made = _ByProblem((), by_problem=self.sources, errors=self.errors)
        self.providers.append(made)
        return made

    def rows(
        self, settings: RunSettings = SETTINGS, jobs: int = 1, tokens: int | None = None, cost: float | None = None
    ) -> dict[str, Row]:  # fmt: skip
        """A new session runs every problem."""
        with self.session() as session:
            run = SuiteRun(
                session, settings, lambda file: lambda notice: None, Purse(tokens, cost, settings.price)
            )  # fmt: skip
            run.check(jobs)
            files = problem_files([self.folder / "set"])
            return {row.name: row for _, row in run.rows(files, lambda file: self.begun.append(file.name), jobs)}

    def session(self) -> Session:
        return Session.open(
            self.folder / "lab", compiler=ScriptedCompiler(), judge=ScriptedJudge(),  # type: ignore[arg-type]
            device=lambda kind: ScriptedDevice(), provider=self.provider,  # type: ignore[return-value]
            workloads=lambda problem, device: problem.check_workloads,
        )  # fmt: skip

    @property
    def proposals(self) -> int:
        return sum(len(provider.requests) for provider in self.providers)


class _ByProblem(ScriptedProvider):
    def __init__(self, sources: tuple[str, ...], by_problem: dict[str, list[str]], errors: list[str]) -> None:
        super().__init__(sources, errors=errors)
        self.by_problem = by_problem

    def propose(self, request, say, cancel):  # type: ignore[no-untyped-def]
        self.sources = self.by_problem[request.problem.name]
        return super().propose(request, say, cancel)


@pytest.fixture
def scripts(tmp_path: Path) -> Iterator[Scripts]:
    made = Scripts(
        tmp_path, fast=["time 20", "time 9"], wrong=["compile_error", "wrong"], uncompiled=["compile_error"] * 2
    )  # fmt: skip
    (tmp_path / "set").mkdir()
    for number, name in enumerate(made.sources):
        text = f"def reference(x):  # x: f32[8, 8]\n    return x + {number}\n"
        (tmp_path / "set" / f"{name}.py").write_text(text)
    yield made


def test_outcomes(scripts: Scripts) -> None:
    for name, text in (("broken", "def reference(x:\n"), ("leaves", "import sys\nsys.exit(3)\n\n\ndef reference(x): 0"),
                       ("fails", "raise MemoryError\n\n\ndef reference(x): 0")):  # fmt: skip
        (scripts.folder / "set" / f"{name}.py").write_text(text)
    rows = scripts.rows()
    assert {name: row.outcome for name, row in rows.items()} == {
        "broken": "not read", "fails": "not read", "fast": "correct", "leaves": "not read",
        "uncompiled": "not compiled", "wrong": "wrong",
    }  # fmt: skip
    fast, wrong = rows["fast"], rows["wrong"]
    assert (fast.time_us, fast.kind, fast.candidates, fast.tokens) == (9.0, "predicted", 2, 30)
    assert fast.label == "the floor is mostly the launch" and fast.floor_us == pytest.approx(2.0, abs=0.01)
    assert fast.bound_us and fast.gap == 9.0 / fast.bound_us
    assert (wrong.reason, wrong.compiled, wrong.time_us) == ("wrong result: off by far", True, None)
    assert rows["uncompiled"].reason == "compile error: UNSUP: no such thing" and not rows["uncompiled"].compiled
    assert rows["broken"].reason.startswith("syntax error at line 1") and "MemoryError" in rows["fails"].reason


def test_what_has_ended_is_not_run_again_unless_it_or_the_options_change(scripts: Scripts) -> None:
    first = scripts.rows()
    asked = scripts.proposals
    assert scripts.rows() == first and scripts.proposals == asked
    (scripts.folder / "set" / "fast.py").write_text("def reference(x):  # x: f32[8, 8]\n    return x * 7\n")
    changed = scripts.rows()
    assert scripts.proposals == asked + 2
    assert {name for name, row in changed.items() if row.run_id != first[name].run_id} == {"fast"}
    other = scripts.rows(RunSettings(**{**vars(SETTINGS), "budget": Budget(max_steps=1)}))
    assert not {row.run_id for row in other.values()} & {row.run_id for row in changed.values()}


@pytest.fixture
def left(scripts: Scripts, monkeypatch: pytest.MonkeyPatch) -> str:
    """The run that Ctrl-C left unfinished."""

    def interrupted(handle: RunHandle) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RunHandle, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scripts.rows()
    with scripts.session() as session:
        (run,) = session.runs()
    return run.run_id


def test_ctrl_c_leaves_a_run_that_the_next_suite_resumes(scripts: Scripts, left: str) -> None:
    row = scripts.rows()["fast"]
    assert (row.run_id, row.outcome) == (left, "correct")


def test_a_run_that_another_process_drives_is_named_and_the_rest_goes_on(scripts: Scripts, left: str) -> None:
    with scripts.session() as session:
        lease = session.services.store.lease(left)
        rows = scripts.rows()
        lease.release()
    assert rows["fast"].outcome == "unfinished" and "is being driven by process" in rows["fast"].reason
    assert rows["wrong"].outcome == "wrong"


def test_a_server_that_failed_is_asked_again(scripts: Scripts) -> None:
    scripts.errors += ["no answer"] * 20
    down = scripts.rows()["fast"]
    assert down.outcome == "nothing accepted" and "no answer" in down.reason
    scripts.errors.clear()
    up = scripts.rows()["fast"]
    assert (up.outcome, up.run_id) == ("correct", down.run_id)


def test_several_run_at_a_time(scripts: Scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    together, compiles = threading.Barrier(3), ScriptedCompiler.compile

    def compile_with_the_others(self, source, *arguments):  # type: ignore[no-untyped-def]
        if source in ("time 20", "wrong", "compile_error") and together.n_waiting >= 0 and not together.broken:
            with contextlib.suppress(threading.BrokenBarrierError):
                reached.append(together.wait(10))
                together.abort()  # each problem's first candidate waited for the others'
        return compiles(self, source, *arguments)

    reached: list[int] = []
    monkeypatch.setattr(ScriptedCompiler, "compile", compile_with_the_others)
    rows = scripts.rows(jobs=3)
    assert reached
    assert {name: row.outcome for name, row in rows.items()} == {
        "fast": "correct", "wrong": "wrong", "uncompiled": "not compiled",
    }  # fmt: skip


def test_ctrl_c_leaves_every_run_to_be_resumed(scripts: Scripts) -> None:
    (scripts.folder / "set" / "broken.py").write_text("def reference(x:\n")
    scripts.sources.update(fast=["slow 600"], uncompiled=["slow 600"], wrong=["slow 600"])
    with scripts.session() as session:
        run = SuiteRun(session, SETTINGS, lambda file: lambda notice: None)
        ending = run.rows(problem_files([scripts.folder / "set"]), lambda file: None, 2)
        assert next(ending)[1].outcome == "not read"
        deadline = time.monotonic() + 10
        while len([each for each in session.runs() if each.step is Step.COMPILE]) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        ending.close()  # as KeyboardInterrupt does
    with scripts.session() as session:
        names = {each.name: each.step for each in session.runs()}
        assert names == {"fast": Step.COMPILE, "uncompiled": Step.COMPILE}  # the third was not begun
        session.services.store.lease(session.runs()[0].run_id).release()


def test_a_file_that_changes_torchs_defaults_runs_after_the_others(scripts: Scripts) -> None:
    import torch

    text = "import torch\ntorch.set_default_dtype(torch.float64)\n\n\ndef reference(x):  # x: f32[8, 8]\n    return x\n"
    (scripts.folder / "set" / "aloof.py").write_text(text)
    scripts.sources["aloof"] = ["time 5"]
    assert scripts.rows(jobs=2)["aloof"].outcome == "correct"
    assert scripts.begun[-1] == "aloof" and sorted(scripts.begun[:-1]) == ["fast", "uncompiled", "wrong"]
    assert torch.get_default_dtype() is torch.float32


def test_what_the_problems_may_use_together_is_not_exceeded(scripts: Scripts) -> None:
    rows = scripts.rows(tokens=30)  # an answer has 15 tokens
    assert {name: row.outcome for name, row in rows.items()} == {
        "fast": "correct", "uncompiled": "not run", "wrong": "not run",
    }  # fmt: skip
    assert (rows["fast"].tokens, rows["wrong"].reason) == (30, "budget: the suite's 30 tokens are used (30)")
    assert rows["wrong"].problem_key and not rows["wrong"].run_id
    price = replace(SETTINGS, price=Price(1e6, 0.0))  # a dollar for each token sent: 10 dollars an answer
    assert scripts.rows(price, cost=35.0)["wrong"].tokens == 0


def test_a_run_that_the_suites_budget_stopped_is_continued_by_a_larger_one(scripts: Scripts) -> None:
    stopped = scripts.rows(tokens=15)["fast"]
    assert (stopped.outcome, stopped.candidates, stopped.time_us) == ("correct", 1, 20.0)
    assert scripts.rows(tokens=15)["fast"] == stopped  # not even resumed
    continued = scripts.rows(tokens=60)
    assert (continued["fast"].run_id, continued["fast"].time_us) == (stopped.run_id, 9.0)
    assert continued["uncompiled"].outcome == "not compiled" and continued["wrong"].outcome == "not run"


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"device": "cuda"}, "disturb each other's times"), ({"provider": "manual:talk"}, "number their requests alike")],
)
def test_several_at_a_time_are_refused_where_they_would_meet(
    scripts: Scripts, changed: dict[str, str], message: str
) -> None:
    settings = replace(SETTINGS, **changed)  # type: ignore[arg-type]
    assert usual_jobs(settings) == 1 and usual_jobs(SETTINGS) >= 1
    with pytest.raises(InputError, match=message):
        scripts.rows(settings, jobs=2)
    assert not scripts.begun


def test_seconds_of_the_gpu_are_counted_only_where_there_is_one(scripts: Scripts) -> None:
    scripts.sources["fast"] = ["slow 0.1\ntime 20"]
    assert scripts.rows()["fast"].gpu_seconds is None
    row = scripts.rows(replace(SETTINGS, device="cuda"))["fast"]
    assert row.gpu_seconds is not None and 0.2 <= row.gpu_seconds < row.seconds  # compiling was slow too
    assert row.integrity == "degenerate"


def test_options_that_no_run_can_have_are_refused_at_once(scripts: Scripts) -> None:
    with pytest.raises(InputError, match="no speed-of-light figures for GPU"):
        scripts.rows(RunSettings(gpu="V100", auto=True))
    assert not scripts.proposals

"""Runs of a suite with scripted services: outcomes, and what is run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.run import Budget, RunSettings
from cutegen_lab.session import RunHandle, Session
from cutegen_lab.suite.files import problem_files
from cutegen_lab.suite.record import Row
from cutegen_lab.suite.runner import SuiteRun
from tests.loop.scripted import ScriptedCompiler, ScriptedDevice, ScriptedJudge, ScriptedProvider

SETTINGS = RunSettings(provider="replay:script", device="emulator", auto=True, budget=Budget(max_steps=2, max_fixes=1))


class Scripts:
    """Sources by problem; counts proposals."""

    def __init__(self, session_folder: Path, **sources: list[str]) -> None:
        self.folder, self.sources = session_folder, sources
        self.providers: list[ScriptedProvider] = []
        self.errors: list[str] = []

    def provider(self, settings: RunSettings) -> ScriptedProvider:
        made = _ByProblem((), by_problem=self.sources, errors=self.errors)
        self.providers.append(made)
        return made

    def rows(self, settings: RunSettings = SETTINGS) -> dict[str, Row]:
        """A new session runs every problem."""
        with self.session() as session:
            run = SuiteRun(session, settings, lambda notice: None)
            run.check()
            return {row.name: row for row in run.rows(problem_files([self.folder / "set"]), lambda file: None)}

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


def test_options_that_no_run_can_have_are_refused_at_once(scripts: Scripts) -> None:
    with pytest.raises(InputError, match="no speed-of-light figures for GPU"):
        scripts.rows(RunSettings(gpu="V100", auto=True))
    assert not scripts.proposals

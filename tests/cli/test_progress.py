"""What a command says of its progress where no terminal shows a spinner."""

from __future__ import annotations

from typing import Any, cast

import pytest

from cutegen_lab.cli.progress import QUIET_SECONDS, Progress, SuiteProgress
from cutegen_lab.core.run import Step, StepStarted, StoredEvent
from cutegen_lab.loop.notices import Notice


def test_a_long_step_says_now_and_then_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with Progress("softmax", lambda: now[0]) as progress:
        for seconds in (1.0, QUIET_SECONDS + 1, QUIET_SECONDS + 2, 2 * QUIET_SECONDS + 2):
            now[0] = seconds
            progress(Notice(cast(Any, None), None, f"check main after {seconds:.0f} s"))
    said = capsys.readouterr().err.splitlines()
    assert said == ["check main after 31 s", "check main after 62 s"]


def test_what_a_person_must_act_on_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("softmax", lambda: 0.0) as progress:
        progress(Notice(cast(Any, None), None, "waiting for answer.txt"))
    assert capsys.readouterr().err == "waiting for answer.txt\n"


def test_a_suite_says_what_has_ended_and_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with SuiteProgress("set", 3, lambda: now[0]) as progress:
        for name in ("a", "b"):
            progress.begun(name)
        progress.of("a")(Notice(cast(Any, None), StoredEvent(1, 0.0, StepStarted(Step.COMPILE, "c2"))))
        progress.ended("b", "correct")
        now[0] = QUIET_SECONDS + 1
        progress.of("a")(Notice(cast(Any, None), None, "check main"))
    assert capsys.readouterr().err.splitlines() == ["1/3 b: correct", "1 of 3 ended; a: check main"]


def test_a_terminal_has_a_line_for_each_problem_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    with SuiteProgress("set", 3) as progress:
        progress.begun("a")
        progress.of("b")(Notice(cast(Any, None), None, "check [red]main[/red] " + "x" * 80))
        shown = cast(Any, progress)._status.status.splitlines()
        assert shown[:2] == ["0 of 3 ended", "a: reading"]
        assert shown[2].startswith(r"b: check \[red]main") and shown[2].endswith("xxx")  # no markup
        assert len(shown[2].replace("\\", "")) == 36 and len(shown) == 3
        progress.ended("a", "correct")
        assert cast(Any, progress)._status.status.splitlines()[0] == "1 of 3 ended"

"""SIGKILL at every event, in the middle of every append, and at random: nothing recorded is lost, and resuming a run
comes to the same end."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.core.run import Event, Resumed, RunState, StepStarted
from cutegen_lab.loop import fold
from cutegen_lab.stores.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]


def drive(path: Path, point: str = "never") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.stores.scripted_run", str(path), point]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603


def events_in(path: Path) -> list[Event]:
    store = SqliteStore(path)
    try:
        return [e.event for e in store.events("r1")] if store.runs() else []
    finally:
        store.close()


def outcome_of(events: list[Event]) -> RunState:
    """The end of a run, less what may differ between one process and two: how long a compile took."""
    state = fold(events)
    return replace(state, compiled={k: replace(v, seconds=0.0) for k, v in state.compiled.items()})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    path = tmp_path_factory.mktemp("whole") / "lab.db"
    process = drive(path)
    assert process.communicate(timeout=60)[0].strip() == "accepted"
    return events_in(path)


def resume(path: Path, whole: list[Event], before: list[Event]) -> None:
    process = drive(path)
    out, errors = process.communicate(timeout=60)
    assert out.strip() == "accepted", errors
    after = events_in(path)
    assert after[: len(before)] == before, "a recorded event was lost or changed"
    assert outcome_of(after) == outcome_of(whole)
    work = [e.type for e in after if not isinstance(e, Resumed | StepStarted)]
    assert work == [e.type for e in whole if not isinstance(e, StepStarted)]


@pytest.mark.slow
def test_killed_at_every_event_and_inside_every_append(tmp_path: Path, whole: list[Event]) -> None:
    assert len(whole) > 30
    points = [f"{n}{mark}" for n in range(1, len(whole) + 1) for mark in ("", "-")]
    for batch in range(0, len(points), 4):  # a few at a time: most of it is the interpreter starting
        running = {p: drive(tmp_path / p / "lab.db", p) for p in points[batch : batch + 4]}
        for point, process in running.items():
            process.communicate(timeout=60)
            assert process.returncode == -signal.SIGKILL
            before = events_in(tmp_path / point / "lab.db")
            expected = int(point.rstrip("-")) - point.endswith("-")
            assert [e.type for e in before] == [e.type for e in whole[:expected]]
    for point in points[::3]:
        resume(tmp_path / point / "lab.db", whole, events_in(tmp_path / point / "lab.db"))


def test_killed_at_random_again_and_again(tmp_path: Path, whole: list[Event]) -> None:
    path, before, chance = tmp_path / "lab.db", list[Event](), random.Random(7)  # noqa: S311
    for _ in range(6):
        process = drive(path)
        time.sleep(chance.uniform(0.1, 0.6))
        process.kill()
        process.communicate()
        now = events_in(path)
        assert now[: len(before)] == before
        before = now
    resume(path, whole, before)

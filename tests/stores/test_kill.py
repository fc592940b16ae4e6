"""SIGKILL at every event, in the middle of every append, and at random: nothing recorded is lost, and resuming a run
comes to the same end."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from cutegen_lab.core.run import Event, Resumed, RunState, StepStarted
from cutegen_lab.loop import fold
from cutegen_lab.stores.sqlite import SqliteStore
from tests.stores import scripted_run

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload([scripted_run.__name__])


def drive(path: Path, point: str = "never") -> ForkServerProcess:
    """A process that begins with all it needs imported: only the run takes time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    process = SERVER.Process(target=scripted_run.main, args=(str(path), point))
    process.start()
    return process


def ended(process: ForkServerProcess) -> int | None:
    process.join(60)
    return process.exitcode


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
    assert ended(drive(path)) == 0
    assert fold(events_in(path)).outcome == "accepted"
    return events_in(path)


def resume(path: Path, whole: list[Event], before: list[Event]) -> None:
    assert ended(drive(path)) == 0
    after = events_in(path)
    assert after[: len(before)] == before, "a recorded event was lost or changed"
    assert outcome_of(after) == outcome_of(whole)
    work = [e.type for e in after if not isinstance(e, Resumed | StepStarted)]
    assert work == [e.type for e in whole if not isinstance(e, StepStarted)]


@pytest.mark.slow
def test_killed_at_every_event_and_inside_every_append(tmp_path: Path, whole: list[Event]) -> None:
    assert len(whole) > 30
    points = [f"{n}{mark}" for n in range(1, len(whole) + 1) for mark in ("", "-")]
    for point in points:
        assert ended(drive(tmp_path / point / "lab.db", point)) == -signal.SIGKILL
        before = events_in(tmp_path / point / "lab.db")
        expected = int(point.rstrip("-")) - point.endswith("-")
        assert [e.type for e in before] == [e.type for e in whole[:expected]]
    for point in points[::3]:
        resume(tmp_path / point / "lab.db", whole, events_in(tmp_path / point / "lab.db"))


def test_killed_at_random_again_and_again(tmp_path: Path, whole: list[Event]) -> None:
    path, before, chance = tmp_path / "lab.db", list[Event](), random.Random(7)  # noqa: S311
    for _ in range(6):
        process = drive(path)
        time.sleep(chance.uniform(0.0, 0.3))
        process.kill()
        ended(process)
        now = events_in(path)
        assert now[: len(before)] == before
        before = now
    resume(path, whole, before)

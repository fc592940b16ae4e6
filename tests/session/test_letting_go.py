"""A finished run is let go: its thread ends, and its lock is free for another session. Who drives a run is said."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from cutegen_lab.core.errors import StoreError
from cutegen_lab.core.run import Answer, Step
from cutegen_lab.stores.sqlite import SqliteStore
from cutegen_lab.views.text import summary
from tests.loop.scripted import PROBLEM, Waiting
from tests.session.test_session import AUTO, Opener, opened  # noqa: F401 - a fixture


def resources() -> tuple[int, int]:
    return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))


def test_twenty_finished_runs_hold_nothing(opened: Opener) -> None:  # noqa: F811
    session = opened()
    session.run(PROBLEM, AUTO)
    before = resources()
    for _ in range(20):
        run = session.run(PROBLEM, AUTO)
        assert run.state.outcome == "accepted" and not run.driving
    assert all(now <= then for now, then in zip(resources(), before, strict=True))


def test_another_session_takes_up_what_has_finished(opened: Opener) -> None:  # noqa: F811
    first, second = opened(["time 10", "time 9", "time 8"]), opened(["time 10", "time 9", "time 8"])
    run = first.run(PROBLEM, AUTO)
    other = second.attach(run.run_id)
    other.edit("time: 7\n")
    assert "c4" in other.wait(10).candidates
    assert run.state == other.state and run.view().candidates == other.view().candidates
    run.edit("time: 6\n")  # and back: the second has finished with it, too
    assert "c5" in run.wait(10).candidates


def test_verbs_on_a_finished_run_never_fall_between_two_drivers(opened: Opener) -> None:  # noqa: F811
    run = opened().run(PROBLEM, AUTO)
    for number in range(3, 43):
        run.edit("time: 5\n")
        if number % 2:
            run.wait(10)
        else:
            run.stop()
            run.resume()
        assert f"c{number}" in run.wait(10).candidates
    assert run.wait(10).finished and not run.driving


def test_a_stopped_run_is_let_go_and_goes_on(opened: Opener) -> None:  # noqa: F811
    run = opened(delay="slow 30").start(PROBLEM)
    run.stop()
    assert run.wait(10).finished and not run.driving
    other = opened().attach(run.run_id)
    assert other.resume().wait(10).current_id == "c1"


def test_a_run_driven_elsewhere_is_not_called_interrupted(opened: Opener) -> None:  # noqa: F811
    waiting = Waiting()
    run = opened(["slow 60\ntime 1"]).start(PROBLEM, subscriber=waiting)
    waiting.until(lambda n: getattr(n.event and n.event.event, "step", None) is Step.COMPILE, timeout=60)
    view = (other := opened().attach(run.run_id)).view()
    assert (view.status, view.verbs) == ("running", ["resume"])
    assert f"at step compile (driven by process {os.getpid()})" in summary(view)
    assert [step.status for step in view.candidates[0].steps][:2] == ["done", "running"]
    run.close()
    view = other.view()
    assert view.status == "interrupted" and "interrupted at step compile; resume it to continue" in summary(view)


def test_a_review_elsewhere(opened: Opener) -> None:  # noqa: F811
    run = opened().start(PROBLEM)
    run.wait(10)
    other = opened().attach(run.run_id)
    assert f"waiting for your answer on c1 (driven by process {os.getpid()})" in summary(other.view())
    with pytest.raises(StoreError, match="is being driven by process"):
        other.approve()


def test_looking_does_not_keep_the_lock_from_anybody(tmp_path: Path) -> None:
    store, over = SqliteStore(tmp_path / "lab.db"), threading.Event()

    def look() -> None:
        while not over.is_set():
            store.driven_by("r")

    watchers = [threading.Thread(target=look) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    try:
        for _ in range(200):
            lease = store.lease("r")
            assert store.driven_by("r") == str(os.getpid())
            lease.release()
    finally:
        over.set()
        for watcher in watchers:
            watcher.join()
        store.close()
    assert store.driven_by("r") == store.driven_by("unknown") == ""


def test_after_a_store_that_could_not_be_written_verbs_work_again(
    opened: Opener,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = opened()
    run = session.start(PROBLEM)
    run.wait(10)
    whole = session.services.store.append

    def full(run_id: str, event: object, after: object = None) -> object:
        if getattr(event, "type", "") == "step_started":
            raise StoreError("disk is full")
        return whole(run_id, event, after)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(session.services.store, "append", full)
        run.approve()
        with pytest.raises(StoreError, match="disk is full"):
            run.wait(10)
    assert run.resume().wait(10).current_id == "c2"
    assert run.state.answers["c1"] == Answer("approve", "c1")

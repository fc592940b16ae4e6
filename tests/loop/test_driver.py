"""Drivers over scripted services and the real store: order, cancelling, retries, subscribers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError, StoreError
from cutegen_lab.core.run import (
    Answer,
    Answered,
    Budget,
    Checked,
    Event,
    Profiled,
    RunSettings,
    RunState,
    Step,
    StepStarted,
    StoredEvent,
    Timed,
)
from cutegen_lab.core.stopwatch import COPY
from cutegen_lab.core.trial import Profile, Timing
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop import fold
from cutegen_lab.loop.budget import nothing_to_gain
from cutegen_lab.loop.driver import Driver, ThreadedDriver
from cutegen_lab.loop.notices import Notice
from cutegen_lab.loop.services import Services
from cutegen_lab.stores.sqlite import SqliteStore
from tests.loop.events import passing
from tests.loop.scripted import ScriptedProvider, Waiting, driving, services, started

AUTO = RunSettings(auto=True, budget=Budget(max_steps=3))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "lab.db")
    yield store
    store.close()


def begin(store: SqliteStore, chosen: Services, settings: RunSettings = AUTO, kind: type[Driver] = Driver) -> Driver:
    event = started(settings=settings)
    store.append("r1", event, fold([event]))
    return driving(chosen, kind)


def test_an_unattended_run_to_its_end(store: SqliteStore) -> None:
    chosen = services(store, ["time 10", "wrong", "time 8"])
    state = begin(store, chosen).work()
    assert (state.outcome, state.accepted, state.incumbent_id) == ("accepted", ("c1", "c3"), "c3")
    assert [t.verdict for t in state.trials.values()] == [Verdict.PASSED, Verdict.WRONG_RESULT, Verdict.PASSED]
    assert [r.kind for r in chosen.provider(AUTO).requests] == ["generate", "refine", "fix"]
    assert state.candidates["c3"].parent_id == "c2"
    assert fold(e.event for e in store.events("r1")) == state
    assert chosen.compiler().compiled[0][2] == ("main", "one_row")
    assert chosen.judge().incumbents == [None, state.compiled["c1"].artifact_sha256]  # type: ignore[attr-defined]


@pytest.mark.parametrize("auto", [True, False])
def test_an_unattended_run_ends_where_a_refinement_would_gain_nothing(store: SqliteStore, auto: bool) -> None:
    driver = begin(store, services(store, ["time 10", "time 9\nfloor", "time 8"]), replace(AUTO, auto=auto))
    while not (state := driver.work()).finished:
        driver.answer(Answer("approve"))
    floor = "c2 is at the floor: memory 8 µs + launch 2 µs: a refinement would gain nothing"
    assert len(state.candidates) == (2 if auto else 3) and (state.problem_note == floor) == auto
    assert fold(e.event for e in store.events("r1")) == state


def test_a_measured_time_is_at_the_floor_only_where_no_copy_is_faster() -> None:
    at_the_floor = Profile("emulator", "at the floor: memory 8 µs + launch 2 µs", {})
    for copy_us, told in (({COPY: 10.0}, True), ({COPY: 9.5}, False), ({}, False)):
        timing = Timing("measured", 10.0, "script", "scripted", baselines=copy_us)
        events = [*passing("c1")[:3], Timed("c1", timing), Profiled("c1", at_the_floor), Answered(Answer("approve"))]
        assert bool(nothing_to_gain(fold([started(), *events]))) == told


def test_everything_an_answer_depended_on_is_recorded(store: SqliteStore) -> None:
    state = begin(store, services(store, ["time 10"])).work()
    record = state.trials["c1"].provenance
    assert record.problem_key == state.problem.key
    assert record.source_sha256 == state.candidates["c1"].source_sha256
    assert record.seeds == (0, 1)
    assert record.tolerances == vars(state.problem.tolerances)
    assert record.versions == {"python": "3", "nvidia-cutlass-dsl": "4.8.1"}
    assert (record.arch, record.device, record.isolation) == ("sm_90a", "scripted", ("rlimits",))
    assert store.get_artifact(record.artifact_sha256).source_sha256 == record.source_sha256
    resources = state.trials["c1"].resources
    assert resources and (resources.registers, resources.spill_bytes, resources.dynamic_smem_bytes) == (40, 12, 128)


def test_an_event_is_on_disk_before_the_state_moves(store: SqliteStore) -> None:
    chosen = services(store, ["time 10"])
    driver = begin(store, chosen)
    original = store.append
    seen: list[bool] = []

    def append(run_id: str, event: Event, after: RunState | None = None) -> StoredEvent:
        moved = driver.state is after and not isinstance(event, StepStarted)
        seen.append(not moved and fold(e.event for e in store.events("r1")) == driver.state)
        return original(run_id, event, after)

    store.append = append  # type: ignore[method-assign]
    driver.work()
    assert len(seen) > 8 and all(seen)


def test_a_store_that_fails_stops_the_state(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = begin(store, services(store, ["time 10"]), kind=ThreadedDriver)
    assert isinstance(driver, ThreadedDriver)
    before = driver.state

    def full(*_: object) -> StoredEvent:
        raise StoreError("disk is full")

    monkeypatch.setattr(store, "append", full)
    driver.start()
    with pytest.raises(StoreError, match="disk is full"):
        driver.wait(5)
    assert driver.state is before


@pytest.mark.parametrize(
    ("source", "delay", "step"),
    [
        ("time 1", "slow 30", Step.GENERATE),
        ("time 1", "deaf 30", Step.GENERATE),
        ("slow 30", "", Step.COMPILE),
        ("deaf 30", "", Step.COMPILE),
    ],
)
def test_stop_is_honoured_within_a_second(store: SqliteStore, source: str, delay: str, step: Step) -> None:
    driver = begin(store, services(store, ScriptedProvider([source], delay=delay)), kind=ThreadedDriver)
    assert isinstance(driver, ThreadedDriver)
    waiting = Waiting()
    driver.subscribe(waiting)
    driver.start()
    waiting.until(lambda n: getattr(n.event and n.event.event, "step", None) is step)
    begun = time.monotonic()
    driver.stop()
    state = driver.wait(5)
    driver.close()
    assert time.monotonic() - begun < 1.0
    assert (state.step, state.stopped_at) == (Step.DONE, step)
    assert not driver._thread.is_alive()


@pytest.mark.parametrize("step", [Step.CHECK, Step.TIME])
def test_stop_during_judging(store: SqliteStore, step: Step) -> None:
    chosen = services(store, ["time 1"])
    reached = threading.Event()

    def hang(*args: object, **named: object) -> object:
        reached.set()
        args[-1].wait(30)  # type: ignore[attr-defined]
        raise AssertionError("result of a cancelled step")

    setattr(chosen.judge(), step.value, hang)
    driver = begin(store, chosen, kind=ThreadedDriver)
    assert isinstance(driver, ThreadedDriver)
    driver.start()
    assert reached.wait(5)
    begun = time.monotonic()
    driver.stop()
    driver.close()
    assert time.monotonic() - begun < 1.0
    assert driver.state.stopped_at is step
    assert fold(e.event for e in store.events("r1")) == driver.state


def test_a_result_that_comes_after_stop_and_branch_is_dropped(store: SqliteStore) -> None:
    settings = RunSettings(budget=Budget(max_steps=5))
    chosen = services(store, ["time 10", "deaf 0.3", "time 9"])
    driver = begin(store, chosen, settings, ThreadedDriver)
    assert isinstance(driver, ThreadedDriver)
    driver.start()
    driver.wait(5)
    waiting = Waiting()
    driver.subscribe(waiting)
    driver.answer(Answer("approve"))
    waiting.until(lambda n: getattr(n.event and n.event.event, "step", None) is Step.COMPILE)
    driver.stop()
    driver.answer(Answer("branch", target_id="c1"))
    state = driver.wait(5)
    driver.stop()
    with pytest.raises(InputError, match="cannot approve: the run is done"):
        driver.answer(Answer("approve"))
    driver.close()
    assert state.current_id == "c3" and "c2" not in state.compiled
    assert state.candidates["c3"].parent_id == "c1"


def test_our_own_failures_rest_and_can_be_retried(store: SqliteStore) -> None:
    chosen = services(store, ["cage_error"])
    state = begin(store, chosen, RunSettings()).work()
    assert (state.step, state.failed_step) == (Step.REVIEW, Step.COMPILE)
    assert "the cage broke. Run cutegen doctor." in state.problem_note
    again = driving(chosen)
    again.answer(Answer("retry"))
    again.work()
    assert len(chosen.compiler().compiled) == 2


def test_a_lost_device_is_not_the_candidates_fault(store: SqliteStore) -> None:
    state = begin(store, services(store, ["device_error"]), RunSettings()).work()
    assert state.failed_step is Step.CHECK and "c1" not in state.trials
    assert not any(isinstance(e.event, Checked) for e in store.events("r1"))


def test_a_bug_in_a_part_is_named_and_does_not_end_the_process(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = services(store, ["time 1"])
    monkeypatch.setattr(chosen.judge(), "check", lambda *_: 1 / 0)
    state = begin(store, chosen, RunSettings()).work()
    assert "internal error: ZeroDivisionError" in state.problem_note


def test_auto_retries_a_garbled_answer(store: SqliteStore) -> None:
    asked = replace(AUTO, provider="openai")
    state = begin(store, services(store, ScriptedProvider(["time 1"], errors=["garbled"])), asked).work()
    assert state.accepted == ("c1",)
    assert [e.event.type for e in store.events("r1")].count("generate_failed") == 2  # garbled, then exhausted


def test_seconds_are_counted_while_working_only(tmp_path: Path) -> None:
    now = [1000.0]
    store = SqliteStore(tmp_path / "clock.db", clock=lambda: now[0])
    chosen = services(store, ["time 10", "time 9"])
    driver = begin(store, chosen, RunSettings(budget=Budget(max_seconds=5.0)))
    driver.work()
    now[0] += 3600  # the analyst thinks
    driver.answer(Answer("approve"))
    assert driver.work().step is Step.REVIEW
    original = chosen.judge().check

    def slow(*args: object) -> object:
        now[0] += 6
        return original(*args)  # type: ignore[arg-type]

    chosen.judge().check = slow  # type: ignore[method-assign]
    chosen.provider(AUTO).sources = ["time 10", "time 9", "time 8", "time 7"]  # type: ignore[attr-defined]
    driver.answer(Answer("approve"))
    driver.work()
    driver.answer(Answer("approve"))
    state = driver.work()
    store.close()
    assert (state.outcome, state.problem_note) == ("accepted", "budget: 6 of 5 s used")


def test_answers_are_checked_at_once_and_durable(store: SqliteStore) -> None:
    driver = begin(store, services(store, ["wrong"]), RunSettings(budget=Budget(max_fixes=0)))
    driver.work()
    with pytest.raises(InputError, match="approve_unproven"):
        driver.answer(Answer("approve"))
    driver.answer(Answer("approve_unproven"))
    assert fold(e.event for e in store.events("r1")).accepted == ("c1",)


def test_a_subscriber_that_fails_does_not_take_the_run_with_it(store: SqliteStore) -> None:
    driver = begin(store, services(store, ["time 1"]))
    lines: list[str] = []

    def broken(notice: Notice) -> None:
        lines.append(notice.line)
        raise RuntimeError("display gone")

    unsubscribe = driver.subscribe(broken)
    assert driver.work().outcome == "accepted"
    assert "proposing 1" in lines
    unsubscribe()
    unsubscribe()


def test_profiling_after_a_resume_visits_the_device_again(store: SqliteStore) -> None:
    chosen = services(store, ["time 10"])
    driver = begin(store, chosen)
    while driver.state.step is not Step.PROFILE:
        driver._step()
    driving(chosen).work()
    assert chosen.judge().calls == ["check", "time", "time"]

"""A GPU's clock for a search, over a stopwatch that needs no GPU."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import Cancelled, SetupError
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.problems import read_text
from cutegen_lab.session.config_timers import MeasuredTimer, PredictedTimer
from cutegen_lab.session.factories import forks
from tests.judge.fake_stopwatch import FakeStopwatch, hang
from tests.tuning.test_tuner import build

PROBLEM = read_text("def reference(x):\n    return x * 2\n", name="double", inputs_text="x: f32[64]; x: f32[256]")
TRUE_US = {"a": 10.0, "b": 12.0, "c": 11.0}


def double(inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    return [inputs[0] * 2]


def watch(**options: object) -> FakeStopwatch:
    return FakeStopwatch(double, TRUE_US, **options)  # type: ignore[arg-type]


def timer(device: FakeStopwatch, cancel: threading.Event | None = None) -> MeasuredTimer:
    return MeasuredTimer(PROBLEM, device, "cuda:0 fake", cancel or threading.Event(), seconds=0.5, seed=lambda: 7)


ARTIFACTS = {name: Artifact(name, {}, "sm_90a", "1", {w.name: build(w) for w in PROBLEM.workloads}) for name in TRUE_US}


def test_cold_samples_without_the_first(tmp_path: Path) -> None:
    device = watch(conditions={"GPU": "a card", "driver": "580.1"})
    measured = timer(device)
    assert (measured.device, measured.driver, measured.kind) == ("a card", "580.1", "measured")
    found = dict(measured.time(PROBLEM.workload, ARTIFACTS, 3))
    assert {name: len(times) for name, times in found.items() if not isinstance(times, Fault)} == {
        "a": 3,
        "b": 3,
        "c": 3,
    }
    assert {mode for _, mode, _ in device.log} == {"cold"}
    measured.close()
    assert device.closed


def test_the_device_is_taken_when_it_is_needed_and_for_all_workloads_at_once() -> None:
    device = watch()
    measured = timer(device)
    measured.prepare(PROBLEM.workloads, "a", ARTIFACTS["a"])
    before = device.opened
    measured.open({})
    assert device.opened == 2 and not device.added
    measured.open({"a": ARTIFACTS["a"]})
    assert device.opened == 2 and device.added == ["a"] * 2
    for workload in (*PROBLEM.workloads, *PROBLEM.workloads):
        assert dict(measured.time(workload, ARTIFACTS, 1)).keys() == ARTIFACTS.keys()
    assert (before, device.opened, device.closed) == (0, 2, False) and sorted(device.added) == sorted("abc" * 2)


def test_what_cannot_be_loaded_ahead_is_told_where_it_is_timed() -> None:
    device = watch(crowded=2)
    measured = timer(device)
    measured.open(ARTIFACTS)
    assert device.closed and device.added == ["a", "b", "c"]
    measured.open(ARTIFACTS)
    assert device.added == ["a", "b", "c"], "once is enough"
    found = dict(measured.time(PROBLEM.workload, ARTIFACTS, 1))
    assert not any(isinstance(times, Fault) for times in found.values())


def test_what_those_before_left_no_room_for_is_tried_again_alone() -> None:
    device = watch(crowded=2)
    found = dict(timer(device).time(PROBLEM.workload, ARTIFACTS, 1))
    assert not any(isinstance(times, Fault) for times in found.values()) and device.opened == 2
    turns = dict(timer(watch(crowded=3)).time_interleaved(PROBLEM.workload, ARTIFACTS))
    assert turns.keys() == ARTIFACTS.keys()


def test_a_fault_is_that_configs_alone() -> None:
    device = watch(faults={"b": hang()})
    found = dict(timer(device).time(PROBLEM.workloads[1], ARTIFACTS, 3))
    assert isinstance(found["b"], Fault) and found["b"].verdict is Verdict.HANG
    assert not isinstance(found["a"], Fault) and not isinstance(found["c"], Fault)


@pytest.mark.parametrize("faults", [{"a": hang()}, {("a", 3): hang()}, {"b": hang()}])
def test_in_turns_what_fails_is_left_out(faults: dict[str, Fault]) -> None:
    found = dict(timer(watch(faults=faults)).time_interleaved(PROBLEM.workload, ARTIFACTS))
    assert found.keys() == {"a", "b", "c"} - {key if isinstance(key, str) else key[0] for key in faults}
    assert len({len(times) for times in found.values()}) == 1


def test_no_room_and_ctrl_c() -> None:
    with pytest.raises(SetupError, match="main cannot be timed on the none: too large"):
        list(
            timer(watch(faults={"open": Fault(Verdict.OUT_OF_MEMORY, "too large")})).time(
                PROBLEM.workload, ARTIFACTS, 3
            )
        )
    cancel = threading.Event()
    measured = timer(watch(), cancel)
    cancel.set()
    with pytest.raises(Cancelled):
        list(measured.time(PROBLEM.workload, ARTIFACTS, 3))


def test_a_prediction_is_made_in_a_process_of_its_own_and_may_be_cancelled() -> None:
    cancel = threading.Event()
    predicting = PredictedTimer(PROBLEM, Slow(), target_gpu("sm_90a", ""), cancel, forks())  # type: ignore[arg-type]
    try:
        predicting.prepare([PROBLEM.workload], "a", ARTIFACTS["a"])
        ((name, times),) = predicting.time(PROBLEM.workload, {"a": ARTIFACTS["a"]}, 1)
        assert name == "a" and times != (os.getpid(),) and predicting.busy_seconds > 0
        threading.Timer(0.3, cancel.set).start()
        with pytest.raises(Cancelled):
            list(predicting.time(PROBLEM.workload, {"b": ARTIFACTS["b"]}, 1))
    finally:
        predicting.close()


def test_a_process_that_ends_says_nothing_about_the_config() -> None:
    predicting = PredictedTimer(PROBLEM, Slow(), target_gpu("sm_90a", ""), threading.Event(), forks())  # type: ignore[arg-type]
    try:
        found = dict(predicting.time(PROBLEM.workload, {name: ARTIFACTS[name] for name in ("c", "a")}, 1))
        assert isinstance(found["c"], Fault) and found["c"].verdict is Verdict.DEVICE_ERROR
        assert not isinstance(found["a"], Fault)  # a new one took its place
    finally:
        predicting.close()


class Slow:
    """A judge that answers with its process's number, takes its time over "b" and dies of "c"."""

    def time(self, problem: object, artifact: Artifact, *_: object) -> tuple[Timing, None]:
        if artifact.source_sha256 == "b":
            time.sleep(60)
        if artifact.source_sha256 == "c":
            os._exit(1)
        return Timing("predicted", float(os.getpid()), "a process", "H200"), None

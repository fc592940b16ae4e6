"""What is counted beside a GPU: begun with a kernel's checks, taken up by its timing."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.forks import Forks
from cutegen_lab.core.roofline import GPUS, target_gpu
from cutegen_lab.core.trial import Profile, Timing
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge import StandardJudge
from cutegen_lab.judge.timing import counting
from cutegen_lab.judge.timing.counting import LoadCount, PendingCount
from cutegen_lab.problems import read_text
from tests.judge.torch_device import Kernel, TorchDevice, artifact_for

DOUBLE = read_text("def reference(x):\n    return x * 2\n", inputs_text="x: f32[64]")
H200 = target_gpu("sm_90a", "H200")
SOON = 10.0  # seconds


class Counts(TorchDevice):
    """An emulator that says in which process it counts, and leaves a file there when it has begun."""

    def time(self, *_: object) -> tuple[Timing, Profile]:
        begun = Path(os.environ["BEGUN"])
        begun.write_text(str(os.getpid()))
        while begun.with_suffix(".wait").exists():
            time.sleep(0.01)
        return Timing("predicted", 1.0, "none", "none"), Profile("emulator", "none", {"process": float(os.getpid())})


def emulator() -> TorchDevice:
    return Counts(right)


def right(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x * 2)


def wrong(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x * 3)


@pytest.fixture
def forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forks]:
    monkeypatch.setenv("BEGUN", str(tmp_path / "begun"))
    with closing(Forks((__name__,))) as made:
        yield made


def begun(artifact: Artifact, forks: Forks | None) -> LoadCount:
    return LoadCount(DOUBLE, artifact, H200, 7, emulator, forks)


def quiet(line: str) -> None:
    pass


ARTIFACT = artifact_for(DOUBLE, TorchDevice(right))


def test_it_is_counted_in_a_process_where_there_are_any(forks: Forks) -> None:
    for processes in (forks, None):
        with closing(begun(ARTIFACT, processes)) as counts:
            found = counts.result(quiet, threading.Event())
        assert found is not None and (found.counters["process"] == os.getpid()) == (processes is None)


def test_nothing_is_counted_of_what_is_too_large_or_was_not_built(
    forks: Forks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(begun(replace(ARTIFACT, builds={}), forks)) as counts:
        assert counts.result(quiet, threading.Event()) is None
    monkeypatch.setattr(counting, "COUNTED_BYTES", 8)
    with closing(begun(ARTIFACT, forks)) as counts:
        assert counts.result(quiet, threading.Event()) is None


def ends() -> TorchDevice:
    os._exit(1)


class Reads(TorchDevice):
    def time(self, *_: object) -> tuple[Fault, None]:
        return Fault(Verdict.UNINITIALISED_READ, "reads shared memory that nothing has written"), None


def finds() -> TorchDevice:
    return Reads(right)


def test_what_is_found_while_it_is_counted_is_told(forks: Forks) -> None:
    with closing(LoadCount(DOUBLE, ARTIFACT, H200, 7, finds, forks)) as counts:
        assert (
            counts.result(quiet, threading.Event()) is None and "shared memory that nothing has written" in counts.note
        )


def test_what_was_not_counted_is_told(forks: Forks) -> None:
    with closing(LoadCount(DOUBLE, ARTIFACT, H200, 7, ends, forks)) as counts:
        assert counts.result(quiet, threading.Event()) is None and "the process that counts them ended" in counts.note


def test_the_one_ahead_is_taken_up_once_and_for_the_same_alone(forks: Forks) -> None:
    ahead, first = PendingCount(), begun(ARTIFACT, forks)
    ahead.put(first)
    assert ahead.take(DOUBLE, ARTIFACT, GPUS["H100"]) is None
    assert ahead.take(DOUBLE, replace(ARTIFACT, source_sha256="another"), H200) is None
    assert ahead.take(DOUBLE, pickle.loads(pickle.dumps(ARTIFACT)), H200) is first  # noqa: S301 - our own
    assert ahead.take(DOUBLE, ARTIFACT, H200) is None
    first.close()


def test_a_check_begins_it_and_only_what_passed_goes_on(forks: Forks, tmp_path: Path) -> None:
    judge = StandardJudge(make_emulator=emulator, forks=lambda: forks)
    (tmp_path / "begun.wait").touch()

    def checked(kernel: Kernel) -> Verdict:
        gpu = TorchDevice(kernel, "cuda")
        cancel = threading.Event()
        verdict = judge.check(DOUBLE, artifact_for(DOUBLE, gpu), gpu, quiet, cancel).verdict
        cancel.set()  # as a run does with whatever still works for a step that is over
        return verdict

    assert checked(right) is Verdict.PASSED and _within(SOON, (tmp_path / "begun").exists)
    process = Path("/proc") / (tmp_path / "begun").read_text()
    time.sleep(0.3)
    assert process.exists()
    assert checked(wrong) is Verdict.WRONG_RESULT
    assert _within(SOON, lambda: not process.exists()), "another check ends what nobody took up"


def test_waiting_for_it_can_be_cancelled(forks: Forks, tmp_path: Path) -> None:
    for processes in (forks, None):
        cancel = threading.Event()
        (tmp_path / "begun.wait").touch()
        with closing(begun(ARTIFACT, processes)) as counts:
            threading.Timer(0.1, cancel.set).start()
            with pytest.raises(Cancelled):
                counts.result(quiet, cancel)
            (tmp_path / "begun.wait").unlink()  # a thread ends with what it counts


def test_a_judge_with_one_ahead_can_be_sent_to_another_process(forks: Forks) -> None:
    ahead = PendingCount()
    ahead.put(begun(ARTIFACT, forks))
    assert pickle.loads(pickle.dumps(ahead)).take(DOUBLE, ARTIFACT, H200) is None  # noqa: S301 - our own
    ahead.put(None)


def _within(seconds: float, what: Callable[[], bool]) -> bool:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if what():
            return True
        time.sleep(0.02)
    return False

"""Worker and stopwatch without a GPU: what a hang, a death or a lost context leaves behind, and the sets of tensors."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from cutegen_lab.core.artifact import Build, LaunchPlan
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.stopwatch import Samples, Subject, rotation
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.devices.cuda.bench import Bench
from cutegen_lab.devices.cuda.compile_ahead import CompileAhead
from cutegen_lab.devices.cuda.process import SharedMemory, WorkerProcess
from cutegen_lab.devices.cuda.rotating_buffers import (
    FEWEST_SETS,
    LEAST_SETS,
    MOST_SETS,
    Arena,
    RotatingBuffers,
    set_count,
)
from cutegen_lab.devices.cuda.stopwatch import CudaStopwatch
from cutegen_lab.devices.cuda.worker_protocol import problem_from_request, problem_to_request
from cutegen_lab.judge.timing.measured import rotated_inputs
from cutegen_lab.problems import Reference, read_text
from cutegen_lab.problems.tensors import laid_out, storage

BUILD = Build("", "sm_90a", b"", "", (), LaunchPlan(()))
X, Y = TensorSpec("x", DType.BF16, (3, 5)), TensorSpec("y", DType.U8, (10,))
NO = threading.Event()


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    process = WorkerProcess(module="tests.devices.stub_worker")
    yield process
    process.kill()


def opened(worker: WorkerProcess, watchdog: float = 5.0, cancel: threading.Event = NO) -> CudaStopwatch:
    watch = CudaStopwatch(worker, (X, Y), cancel, watchdog, lambda: None)
    assert watch.open([memoryview(bytes(X.nbytes))]) is None
    return watch


def test_a_stopwatch_asks_and_is_answered(worker: WorkerProcess) -> None:
    watch = opened(worker)
    assert watch.conditions["GPU"] == "Stub" and watch.conditions["TF32 in baselines"].startswith("off")
    assert watch.add_build("candidate", BUILD) == Subject("candidate", 3, ("a note",))
    samples = watch.sample("candidate", "cold", 1, 7)
    assert isinstance(samples, Samples) and samples.times_us == (5.0,)
    assert samples.clock == "CUDA graph of 3 calls between two events"
    assert watch.outputs("candidate", 1) == [bytearray(range(10))]


def test_stopwatches_beside_each_other_are_told_apart_and_end_with_the_first(worker: WorkerProcess) -> None:
    watch = opened(worker)
    other = watch.open_another((X, Y), [memoryview(bytes(X.nbytes))])
    assert isinstance(other, CudaStopwatch)
    asked = []
    worker.ask = lambda request, seconds, cancel: asked.append(request) or {"ok": True, "calls": 3, "notes": []}  # type: ignore[method-assign, func-returns-value]
    watch.add_build("candidate", BUILD), other.add_build("candidate", BUILD)
    watch.close()
    assert [(one["verb"], one["bench"]) for one in asked] == [("add", 0), ("add", 1), ("close", 1), ("close", 0)]


def test_only_what_runs_a_candidate_has_the_watchdog_s_time(worker: WorkerProcess) -> None:
    """PyTorch's own kernels may come from a slow disk the first time, while the workload's tensors are made."""
    given, ask = dict[str, float](), worker.ask
    worker.ask = lambda request, seconds, cancel: (
        given.update({request["verb"]: seconds}),
        ask(request, seconds, cancel),
    )[1]  # type: ignore[method-assign]
    watch = opened(worker, watchdog=0.5)
    watch.add_build("candidate", BUILD), watch.sample("candidate", "cold", 1, 7)
    assert given["open"] > 100 and given["add"] == given["sample"] == 0.5


@pytest.mark.parametrize("asked", [True, False])
def test_a_process_compiles_the_first_reference_and_ends_before_anything_is_timed(
    asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setenv("STUB_OUT", str(tmp_path / "request"))
    first, second = (read_text("def reference(x):  # x: f32[4]\n    return x + 1\n", name=name) for name in "ab")
    ahead = CompileAhead(3, module="tests.devices.stub_compiler")
    process = ahead._process
    assert process is not None
    if asked:
        ahead.compile(first), ahead.compile(second)
        deadline = time.monotonic() + 60
        while not (tmp_path / "request").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        request = json.loads((tmp_path / "request").read_text())
        assert request["problem"]["name"] == "a" and request["index"] == "3"
        assert [TensorSpec.from_dict(one) for one in request["outputs"]] == list(first.workload.outputs)
    ahead.end(), ahead.end()
    assert process.poll() is not None, "it sleeps for a minute, and is killed"


def test_few_cores_are_for_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    ahead = CompileAhead(0, module="none")
    ahead.compile(read_text("def reference(x):  # x: f32[4]\n    return x + 1\n"))
    ahead.end()


def test_a_hang_is_killed_within_the_watchdog_and_named(worker: WorkerProcess) -> None:
    watch, started = opened(worker, watchdog=0.5), time.monotonic()
    watch.add_build("hang", BUILD)
    found = watch.sample("hang", "cold", 1, 7)
    assert isinstance(found, Fault) and found.verdict is Verdict.HANG and "watchdog" in found.message
    assert time.monotonic() - started < 5 and not worker.alive
    later = watch.sample("candidate", "cold", 1, 7)
    assert isinstance(later, Fault) and later.verdict is Verdict.DEVICE_ERROR
    assert later.message.startswith("the worker ended with hang: no answer")


def test_a_death_says_what_the_worker_last_said(worker: WorkerProcess) -> None:
    answer = worker.ask({"verb": "die"}, 5.0, NO)
    assert answer["verdict"] == "device_error"
    assert "status 3: Xid 79: the GPU has fallen off the bus" in answer["message"]
    assert worker.ask({"verb": "execute"}, 5.0, NO)["verdict"] == "device_error"


def test_a_lost_context_ends_the_worker_and_a_refusal_does_not(worker: WorkerProcess) -> None:
    assert worker.ask({"verb": "refuse"}, 5.0, NO)["verdict"] == "out_of_bounds"
    assert worker.alive
    assert "CUDA error 700" in worker.ask({"verb": "sticky"}, 5.0, NO)["message"]
    assert not worker.alive


def test_cancelling_ends_the_worker_within_a_second_and_gives_the_device_back(worker: WorkerProcess) -> None:
    cancel, given_back = threading.Event(), list[str]()
    watch = CudaStopwatch(worker, (X, Y), cancel, 30.0, lambda: given_back.append("back"))
    watch.open([memoryview(bytes(X.nbytes))])
    watch.add_build("hang", BUILD)
    threading.Timer(0.2, cancel.set).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        watch.sample("hang", "cold", 1, 7)
    assert time.monotonic() - started < 1.2 and not worker.alive
    watch.close()
    watch.close()
    assert given_back == ["back"]


def test_shared_memory_carries_tensors_of_any_size_there_and_back() -> None:
    buffers = [bytearray(b"abc"), bytearray(), bytearray(range(256)) * 2]
    views = [memoryview(b) for b in buffers]
    with SharedMemory([len(b) for b in buffers]) as memory:
        memory.write(views)
        assert memory.request["sizes"] == [3, 0, 512]
        for buffer in buffers:
            buffer[:] = bytes(len(buffer))
        memory.read(views)
    assert buffers == [bytearray(b"abc"), bytearray(), bytearray(range(256)) * 2]


def test_problems_are_told_as_they_are() -> None:
    problem = read_text("def reference(x):\n    return 2 * x\n", inputs_text="x: f32[4]")
    (out,) = Reference(problem_from_request(problem_to_request(problem))).run([torch.ones(4)])
    assert out.tolist() == [2.0] * 4


@pytest.mark.parametrize(
    ("set_bytes", "room", "count"),
    [
        (1 << 30, 100 << 30, LEAST_SETS),
        (128 << 20, 100 << 30, FEWEST_SETS),
        (1 << 30, 5 << 30, 5),
        (4 << 20, 100 << 30, 30),
        (12 << 10, 100 << 30, MOST_SETS),
        (1 << 30, 1 << 29, 1),
    ],
)
def test_sets_go_beyond_l2_as_far_as_there_is_room(set_bytes: int, room: int, count: int) -> None:
    assert set_count(set_bytes, 60 << 20, room) == count


def test_sets_hold_the_rotated_values_that_the_judge_expects() -> None:
    x = torch.randn(3, 5).to(torch.bfloat16)
    w = torch.arange(7, dtype=torch.int64)
    columns = TensorSpec("columns", DType.F32, (4, 3), (2, 9))
    specs = [X, TensorSpec("w", DType.I64, (7,)), TensorSpec("empty", DType.F32, (0, 4)), columns]
    inputs = [x, w, torch.empty(0, 4), laid_out(torch.randn(columns.cosize), columns)]
    masters = [storage(t, spec).view(torch.uint8) for t, spec in zip(inputs, specs, strict=True)]
    sets = RotatingBuffers(specs, [Y], masters, count=3, device="cpu")
    seen = set()
    for seed in (1 << 62, 5):
        sets.refresh(seed)
        for call in range(3):
            for got, want in zip(sets.inputs(call), rotated_inputs(inputs, specs, seed, call), strict=True):
                assert torch.equal(got, want)
            (out,) = sets.outputs(call)
            assert out.unique().tolist() == [0xFF if seed % 2 == 0 else 0x7B]
            seen.add(tuple(sets.inputs(call)[1].tolist()))
    assert len(seen) > 3
    assert len({address for call in range(3) for address in sets.addresses(call)}) >= 9


def test_a_subject_is_captured_on_fresh_inputs() -> None:
    """Capturing calls it, and a copy's turn leaves indices that are none; a reference would assert, a kernel fault."""
    index = torch.arange(7, dtype=torch.int64)
    sets = RotatingBuffers([TensorSpec("i", DType.I64, (7,))], [Y], [index.view(torch.uint8)], 3, "cpu")

    class Captured(Exception):
        """Ends the sample before it needs a GPU."""

    def prepare(mode: str) -> None:
        assert all(sorted(sets.inputs(call)[0].tolist()) == [*range(7)] for call in range(3))
        raise Captured

    graphs = SimpleNamespace(has=lambda mode: False, prepare=prepare)
    bench = Bench.__new__(Bench)
    bench.sets, bench._subjects = sets, {"eager": (None, graphs)}  # type: ignore[dict-item]
    for call in range(3):
        for half in sets.halves(call, 1 << 10):
            half.fill_(0xAB)
    with pytest.raises(Captured):
        bench.sample("eager", "cold", 1, 5)


def test_arenas_put_tensors_on_boundaries_and_halves_do_not_overlap() -> None:
    arena = Arena([X, Y, X], "cpu")
    first = arena.addresses[0]
    assert [a - first for a in arena.addresses] == [0, 256, 512]
    assert arena.tensors[2].shape == (3, 5)
    sets = RotatingBuffers([X], [Y], [torch.zeros(X.nbytes, dtype=torch.uint8)], 1, "cpu")
    source, target = sets.halves(0, X.nbytes + Y.nbytes)
    assert source.numel() == target.numel() >= (X.nbytes + Y.nbytes) // 2
    assert source.data_ptr() + source.numel() <= target.data_ptr()
    assert (target.data_ptr() - source.data_ptr()) % 128 == 0


def test_rotations_of_calls_and_tensors_are_spread() -> None:
    found = [rotation(9, call, tensor, 1000) for call in range(64) for tensor in range(4)]
    assert len(set(found)) > 200 and 400 < sum(found) / len(found) < 600
    assert rotation(9, 1, 1, 1) == 0

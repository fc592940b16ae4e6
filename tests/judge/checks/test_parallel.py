"""Small workloads in processes of their own, beside the analyst's: the same checks, in the same order."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest
import torch

from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.forks import ForkEnded, Forks
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import CheckResult, OutputError, WorkloadCheck
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge import StandardJudge
from cutegen_lab.judge.checks import parallel
from cutegen_lab.judge.checks.case import Case
from cutegen_lab.judge.checks.workload_checks import Omitted
from cutegen_lab.judge.compare.outputs import OutputComparison
from cutegen_lab.judge.reference_device import torch_threads
from cutegen_lab.problems import Reference, read_text
from tests.harness.checking import ARCH
from tests.judge.torch_device import TorchDevice, artifact_for

RELU = read_text("def reference(x):\n    return x.relu()\n", inputs_text="x: f32[64,300]")
SMALL = [w.name for w in RELU.check_workloads]
here = False  # true in the judge's process alone


def right(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x.relu())


def wrong(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x)


def never(x: torch.Tensor, out: torch.Tensor) -> None:
    time.sleep(3600)


def right_there() -> TorchDevice:
    return TorchDevice(right)


def wrong_there() -> TorchDevice:
    return TorchDevice(right if here else wrong)


def ends_there() -> TorchDevice:
    if not here:
        sys.exit(1)
    return TorchDevice(right)


def never_ends_there() -> TorchDevice:
    return TorchDevice(right if here else never)


def no_memory() -> TorchDevice:
    raise ForkEnded


def started(make_emulator: Callable[[], TorchDevice], count: int) -> parallel.ParallelChecks:
    """Jobs of the first ``count`` small workloads, on threads."""
    builds = artifact_for(RELU, TorchDevice(right)).builds
    jobs = [
        parallel.Job(make_emulator, RELU, w, builds[w.name], ARCH, ("normal", "zeros"), 0)
        for w in RELU.check_workloads[:count]
    ]
    return parallel.ParallelChecks(jobs, None, threading.Event())


def all_pass(workload: Workload, names: Sequence[str], omitted: Omitted) -> Iterator[WorkloadCheck]:
    return (WorkloadCheck(workload.name, name, 0, Verdict.PASSED) for name in names)


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Forks]:
    monkeypatch.setattr(sys.modules[__name__], "here", True)
    monkeypatch.setattr(parallel, "LARGE_BYTES", 0)
    monkeypatch.setattr(parallel, "cpu_count", lambda: 2)
    with closing(Forks((__name__,))) as made:
        yield made


def judged(
    forks: Forks | None, make_emulator: Callable[[], TorchDevice], kernel: Callable[..., None] = right,
    cancel: threading.Event | None = None,
) -> tuple[CheckResult, TorchDevice]:  # fmt: skip
    device = TorchDevice(kernel)
    judge = StandardJudge(make_emulator=make_emulator, forks=(lambda: forks) if forks else None)
    cancel = cancel or threading.Event()
    return judge.check(RELU, artifact_for(RELU, device), device, lambda line: None, cancel), device


def test_the_checks_are_those_of_one_process(forks: Forks) -> None:
    result, device = judged(forks, right_there)
    alone, every = judged(None, right_there)
    assert result.verdict is Verdict.PASSED and alone.verdict is Verdict.PASSED
    order = [list(dict.fromkeys(check.workload for check in found.checks)) for found in (result, alone)]
    assert order[0] == order[1] == [*SMALL, "main"]
    assert len(device.addresses) < len(every.addresses)
    seeds = [check.seed for check in result.checks]
    assert len(set(seeds)) == len(seeds)


def test_a_small_workload_that_fails_is_told_first(forks: Forks) -> None:
    for kernel in (right, wrong):
        result, _ = judged(forks, wrong_there, kernel)
        assert result.verdict is Verdict.WRONG_RESULT and result.checks[-1].workload == SMALL[0]
        assert f"on {SMALL[0]} " in result.reason


def test_what_is_wrong_in_the_analysts_own_alone_is_found(forks: Forks) -> None:
    result, _ = judged(forks, right_there, wrong)
    assert result.verdict is Verdict.WRONG_RESULT and f"on {RELU.workload.name} " in result.reason
    assert {check.workload for check in result.checks} == {*SMALL, RELU.workload.name}


def test_answers_are_compared_on_the_cores_that_are_free_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    large = read_text(RELU.source, inputs_text="x: f32[256,256]")
    busy, had, errors = [2], list[int](), OutputComparison.errors

    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        right(x, out)
        busy[0] = 0  # the others end while the candidate runs

    def noting_threads(*given: Any) -> tuple[OutputError, ...]:
        had.append(torch.get_num_threads())
        return errors(*given)

    monkeypatch.setattr(OutputComparison, "errors", noting_threads)
    build = artifact_for(large, device := TorchDevice(kernel)).builds["main"]
    case = Case(
        large, Reference(large), large.workload, build, device, target_gpu(ARCH), threading.Event(),
        busy_cores=lambda: busy[0],
    )  # fmt: skip
    with torch_threads(3):
        assert case.run("normal", 1, first=True) and torch.get_num_threads() == 3
    assert had == [3]


def test_what_waits_for_a_core_is_checked_by_whoever_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cpu_count", lambda: 2)
    release, order = threading.Event(), list[str]()

    def waits() -> TorchDevice:
        release.wait()
        return TorchDevice(right)

    def check_here(workload: Workload, names: Sequence[str], omitted: Omitted) -> Iterator[WorkloadCheck]:
        order.append(workload.name)
        if workload == RELU.check_workloads[1]:
            release.set()
        return all_pass(workload, names, omitted)

    every = [(w, ("normal", "zeros")) for w in (*RELU.check_workloads[:3], RELU.workload)]
    with closing(started(waits, 3)) as others:
        found = list(parallel.checks_in_order(every, check_here, others, Omitted()))
    assert order == ["main", SMALL[2], SMALL[1]]
    assert [workload.name for workload, _ in found] == [w.name for w, names in every for _ in names]


def test_a_process_that_ends_cuts_no_check_short() -> None:
    every = [(w, ("normal", "zeros", "large")) for w in (RELU.check_workloads[0], RELU.workload)]
    with closing(started(no_memory, 1)) as others:
        with pytest.raises(ForkEnded):
            others.result_of(RELU.check_workloads[0])
        found = list(parallel.checks_in_order(every, all_pass, others, Omitted()))
    assert [workload.name for workload, _ in found] == [w.name for w, names in every for _ in names]


def test_where_the_process_ends_they_are_checked_here(forks: Forks) -> None:
    assert judged(forks, ends_there)[0].verdict is Verdict.PASSED
    result, _ = judged(forks, ends_there, wrong)
    assert result.verdict is Verdict.WRONG_RESULT and result.checks[-1].workload == SMALL[0]


def test_cancel_ends_them(forks: Forks) -> None:
    cancel = threading.Event()
    timer = threading.Timer(0.5, cancel.set)
    timer.start()
    with pytest.raises(Cancelled):
        judged(forks, never_ends_there, cancel=cancel)
    timer.cancel()


def test_a_gpu_and_one_core_stay_in_one_process(forks: Forks, monkeypatch: pytest.MonkeyPatch) -> None:
    own, gpu = TorchDevice(right), TorchDevice(right, "cuda")
    assert parallel.can_fork(own, right_there)
    assert not parallel.can_fork(gpu, right_there)
    assert not parallel.can_fork(own, None)
    monkeypatch.setattr(parallel, "cpu_count", lambda: 1)
    assert not parallel.can_fork(own, right_there)


def test_the_small_ones_go_to_others_or_all_but_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = [(w, ("normal",)) for w in (*RELU.check_workloads, RELU.workload)]
    monkeypatch.setattr(parallel, "LARGE_BYTES", RELU.workload.nbytes)
    assert [w.name for w, _ in parallel.for_other_processes(plan)] == SMALL
    monkeypatch.setattr(parallel, "LARGE_BYTES", RELU.workload.nbytes + 1)
    assert [w.name for w, _ in parallel.for_other_processes(plan)] == ["main", *SMALL[:0:-1]]


def test_of_small_workloads_the_first_is_checked_here(forks: Forks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LARGE_BYTES", 1 << 20)
    result, device = judged(forks, right_there)
    assert result.verdict is Verdict.PASSED and device.addresses
    assert list(dict.fromkeys(check.workload for check in result.checks)) == [*SMALL, "main"]
    result, _ = judged(forks, never_ends_there, wrong)
    assert result.verdict is Verdict.WRONG_RESULT and {check.workload for check in result.checks} == {SMALL[0]}
    result, _ = judged(forks, wrong_there)
    assert result.verdict is Verdict.WRONG_RESULT

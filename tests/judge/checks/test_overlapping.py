"""A GPU runs one draw while the judge compares another: same verdicts, nothing run after a fault, cancelled at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count

import pytest
import torch

from cutegen_lab.core.errors import Cancelled
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.trial import CheckResult
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.checks import case
from cutegen_lab.judge.checks.case import Case
from cutegen_lab.judge.checks.emulator_recheck import EmulatorRecheck
from cutegen_lab.judge.checks.parallel import ParallelChecks
from cutegen_lab.judge.judge import StandardJudge
from cutegen_lab.problems import read_text
from tests.judge.torch_device import TorchDevice, artifact_for

PROBLEM = "def reference(x):  # x: f32[64,40]\n    return x * 2\n"
LONG = 20.0  # seconds until a test gives up waiting for another thread


def judged(
    kernel: Callable[..., Fault | None], seed: Callable[[], int] | None = None, cancel: threading.Event | None = None
) -> CheckResult:
    problem, device = read_text(PROBLEM), TorchDevice(kernel, kind="cuda")
    judge = StandardJudge(seed or count(1).__next__)
    return judge.check(problem, artifact_for(problem, device), device, lambda line: None, cancel or threading.Event())


def right(x: torch.Tensor, out: torch.Tensor) -> None:
    torch.mul(x, 2, out=out)


def test_the_checks_are_those_of_one_draw_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    overlapped = judged(right)
    monkeypatch.setattr(Case, "overlaps", False)
    for a, b in zip(overlapped.checks, (alone := judged(right)).checks, strict=True):
        assert (a.workload, a.distribution, a.seed, a.errors) == (b.workload, b.distribution, b.seed, b.errors)
    assert overlapped.verdict is alone.verdict is Verdict.PASSED
    assert overlapped.reason == alone.reason


def test_the_next_draw_is_made_while_one_runs() -> None:
    seeds, at_first, changed, runs = list[int](), list[int](), threading.Condition(), count()

    def seed() -> int:
        with changed:
            seeds.append(len(seeds))
            changed.notify()
        return len(seeds)

    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        right(x, out)
        number = next(runs)
        if number == 0:
            at_first.append(len(seeds))
        if number == 2:  # the first run of the second draw, whose seed was the next
            with changed:
                assert changed.wait_for(lambda: len(seeds) > at_first[0] + 1, LONG), "no other draw was begun"

    assert judged(kernel, seed).verdict is Verdict.PASSED


def test_later_draws_are_not_run_after_a_fault() -> None:
    runs = count()

    def kernel(x: torch.Tensor, out: torch.Tensor) -> Fault | None:
        right(x, out)
        return Fault(Verdict.HANG, "no answer") if next(runs) == 2 else None  # the first run of the second draw

    found = judged(kernel)
    assert [check.verdict for check in found.checks] == [Verdict.PASSED, Verdict.HANG]
    assert next(runs) == 3


def test_an_earlier_draw_is_run_to_its_end_although_a_later_one_failed() -> None:
    draws: list[bytes] = []

    def kernel(x: torch.Tensor, out: torch.Tensor) -> Fault | None:
        right(x, out)
        if (drawn := x.numpy().tobytes()) not in draws:
            draws.append(drawn)
        return Fault(Verdict.HANG, "no answer") if drawn in draws[3:] else None

    found = judged(kernel)
    assert [check.verdict for check in found.checks] == [Verdict.PASSED] * 3 + [Verdict.HANG]


def test_cancelling_ends_the_run_under_way() -> None:
    cancel = threading.Event()

    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        right(x, out)
        cancel.set()

    before = threading.active_count()
    with pytest.raises(Cancelled):
        judged(kernel, cancel=cancel)
    assert threading.active_count() <= before + 1  # a timer gives memory back


def test_draws_have_the_cores_that_other_processes_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, had, allowed = iter([1, *[0] * 1000]), list[int](), case.torch_threads_for

    def noting(workload: Workload, busy_cores: int) -> AbstractContextManager[None]:
        had.append(busy_cores)
        return allowed(workload, busy_cores)

    monkeypatch.setattr(EmulatorRecheck, "busy_cores", lambda self: next(busy))
    monkeypatch.setattr(ParallelChecks, "busy_cores", lambda self: 2)
    monkeypatch.setattr(case, "torch_threads_for", noting)
    judged(right)
    assert had[:2] == [3, 2]

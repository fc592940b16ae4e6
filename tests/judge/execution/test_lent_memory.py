"""Large tensors lie in memory that a device lends: what it held before is gone, and what a kernel did there is seen."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

import pytest
import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.protocols import Cancel, Execution
from cutegen_lab.core.trial import CheckResult
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge import StandardJudge, reference_device
from cutegen_lab.problems import read_text
from cutegen_lab.problems.dtypes import TORCH
from tests.judge.torch_device import Kernel, TorchDevice, artifact_for

PROBLEM = read_text("def reference(x):\n    return torch.softmax(x, -1)\n", inputs_text="x: f32[24,40]")
SHAPES = [w.inputs[0].shape for w in (*PROBLEM.check_workloads, PROBLEM.workload)]


class Lender(TorchDevice):
    """Lends the same bytes again and again, without clearing them, or none (``lends``)."""

    def __init__(self, kernel: Kernel, lends: bool = True) -> None:
        super().__init__(kernel, "cuda")
        self.memory, self.slots, self.lends, self.lent = torch.zeros(1 << 20, dtype=torch.uint8), [], lends, 0

    def lend(self, sizes: Sequence[int]) -> Sequence[object] | None:
        if not self.lends:
            return None
        starts = itertools.accumulate((-(-size // 256) * 256 for size in sizes), initial=0)
        self.slots = [self.memory[start : start + size] for start, size in zip(starts, sizes, strict=False)]
        return [slot.numpy() for slot in self.slots]

    def execute_lent(self, build: Build, cancel: Cancel) -> Execution:
        self.lent += 1
        views = []
        for r in build.plan.launches[0].relocations:
            flat = self.slots[r.tensor][r.tensor_offset :].view(TORCH[PROBLEM.workload.inputs[0].dtype])
            shape = next(s for s in SHAPES if build.signature == signature(s))
            views.append(flat[: shape[0] * shape[1]].view(shape))
        return Execution(self._kernel(*views), 0.0)


def signature(shape: tuple[int, ...]) -> str:
    return next(w.signature for w in (*PROBLEM.check_workloads, PROBLEM.workload) if w.inputs[0].shape == shape)


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_device, "LARGE_BYTES", 0)


def judged(device: Lender) -> CheckResult:
    seeds = itertools.count(1)
    judge = StandardJudge(lambda: next(seeds))
    return judge.check(PROBLEM, artifact_for(PROBLEM, device), device, lambda line: None, threading.Event())


def softmax(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(torch.softmax(x, -1))


@pytest.mark.parametrize("lends", [True, False])
def test_a_right_kernel_passes_in_lent_memory_and_where_there_is_none(lends: bool) -> None:
    device = Lender(softmax, lends)
    result = judged(device)
    assert result.verdict is Verdict.PASSED, result.reason
    assert device.lent == (2 * len(result.checks) if lends else 0), "every draw runs twice"
    assert bool(device.addresses) is not lends


def test_an_answer_that_an_earlier_run_left_there_is_gone() -> None:
    turns = itertools.count()

    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        if next(turns) < 2:  # on the first draw alone
            softmax(x, out)

    assert judged(Lender(kernel)).verdict is Verdict.UNWRITTEN_OUTPUT


def test_the_first_run_is_compared_though_the_second_used_its_memory() -> None:
    turns = itertools.count()

    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        softmax(x, out)
        if next(turns) % 2 == 0:
            out[-1, -1] += 1

    assert judged(Lender(kernel)).verdict is Verdict.NON_DETERMINISTIC


def test_a_changed_input_is_seen() -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        softmax(x, out)
        x[0, 0] += 1

    assert judged(Lender(kernel)).verdict is Verdict.INPUT_MODIFIED


def test_a_write_next_to_a_tensor_is_seen() -> None:
    def kernel(x: torch.Tensor, out: torch.Tensor) -> None:
        softmax(x, out)
        if out.storage_offset():  # where there is something in front of it
            torch.as_strided(out, (1,), (1,), out.storage_offset() - 1).add_(1)

    assert judged(Lender(kernel)).verdict is Verdict.OUT_OF_BOUNDS

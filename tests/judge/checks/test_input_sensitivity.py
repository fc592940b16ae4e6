"""What a problem compels a kernel to read, and kernels that read less."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pytest
import torch

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.protocols import Cancel, Execution
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge import StandardJudge
from cutegen_lab.judge.checks.input_sensitivity import AFFORDABLE_BYTES, check_inputs_read, required_fraction
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.reference_device import ReferenceDevice
from cutegen_lab.problems import Reference, read_text
from tests.judge.torch_device import TorchDevice, artifact_for

SUM = "def reference(x, y):\n    return (x + y).sum(-1)\n"


def compelled(text: str, inputs: str) -> Mapping[str, float]:
    task = read_text(text, inputs_text=inputs)
    values = draw(task.workload, "normal", 3)
    kept = [v.clone() for v in values]
    found = required_fraction(
        Reference(task), task.workload, values, 5, ReferenceDevice(TorchDevice(lambda *t: None), task.workload)
    )
    assert all(map(torch.equal, values, kept)), "the inputs are as they were"
    return found


@pytest.mark.parametrize(
    "body",
    ["torch.softmax(x, -1)", "torch.relu(x)", "x.amax(-1)", "x.argmax(-1)", "F.layer_norm(x, x.shape[-1:])", "x @ x.T"],
)
def test_most_problems_need_every_byte(body: str) -> None:
    (share,) = compelled(f"def reference(x):\n    return {body}\n", "x: bf16[64,512]").values()
    assert 0.7 < share < 1


def test_a_small_input_is_looked_at_whole() -> None:
    assert compelled(SUM, "x: f32[8,16], y: f32[8,16]") == {"x": 1.0, "y": 1.0}


@pytest.mark.parametrize(
    ("text", "inputs", "left_out"),
    [
        ("def reference(x, at):\n    return x[at % 64]\n", "x: f32[64,32], at: i64[4]", "x"),
        ("def reference(x, y):\n    return x * 1.0\n", "x: f32[64,32], y: f32[64,32]", "y"),
        ("def reference(x):\n    return torch.tril(x)\n", "x: f32[64,64]", "x"),
        ("def reference(x):\n    return x[:, :256] + 1\n", "x: f32[64,512]", "x"),
        ("def reference(x):\n    return (x > 2).any()\n", "x: f32[64,512]", "x"),
    ],
)
def test_nothing_is_asked_where_some_of_it_does_not_matter(text: str, inputs: str, left_out: str) -> None:
    assert left_out not in compelled(text, inputs)


def test_a_large_reference_is_not_run_on_the_cpu_again_and_again() -> None:
    assert compelled("def reference(x):\n    return x + 1\n", f"x: f32[{AFFORDABLE_BYTES}]") == {}


def test_what_is_missing_is_named() -> None:
    work = read_text(SUM, inputs_text="x: f32[8,16], y: f32[8,16]").workload
    whole = {"loaded_bytes:x": 512.0, "loaded_bytes:y": 512.0}
    assert check_inputs_read(work, {"x": 1.0, "y": 1.0}, whole) is None
    assert check_inputs_read(work, {"x": 1.0, "y": 1.0}, {}) is None, "a device that counts nothing accuses nobody"
    assert check_inputs_read(work, {"x": 1.0}, {**whole, "loaded_bytes:y": 0.0}) is None
    fault = check_inputs_read(work, {"x": 1.0, "y": 0.7}, {**whole, "loaded_bytes:y": 320.0})
    assert fault is not None and fault.verdict is Verdict.UNREAD_INPUT
    assert "at least 70% of the 512 bytes of 'y'" in fault.message and "load 320 of them" in fault.message
    assert check_inputs_read(work, {"y": 0.7}, {**whole, "loaded_bytes:y": 320.0}, sampled=True) is None


class Counting(TorchDevice):
    """Computes what it is told to, and claims to have loaded ``share`` of each input."""

    share = 1.0

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        counting: bool = True, flops: int = 0,
    ) -> Execution:  # fmt: skip
        done = super().execute(build, tensors, buffers, cancel, counting, flops)
        loaded = {f"loaded_bytes:{spec.name}": self.share * spec.nbytes for spec in tensors}
        return Execution(done.fault, 0.0, loaded)


def task() -> Problem:
    return read_text(SUM, inputs_text="x: f32[64,512], y: f32[64,512]")


@pytest.mark.parametrize(("share", "verdict"), [(1.0, Verdict.PASSED), (0.5, Verdict.UNREAD_INPUT)])
def test_a_right_answer_from_half_of_its_inputs_is_refused(share: float, verdict: Verdict) -> None:
    def right(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_((x + y).sum(-1))

    device = Counting(right)
    device.share = share
    found = StandardJudge().check(task(), artifact_for(task(), device), device, lambda line: None, threading.Event())
    assert found.verdict is verdict, found.reason
    if verdict is Verdict.UNREAD_INPUT:
        assert "'x'" in found.reason

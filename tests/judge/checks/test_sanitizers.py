"""What a device's sanitizers find counts; what they cannot look at is said."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.protocols import Cancel, Inspection, SanitizerTool
from cutegen_lab.core.trial import CheckResult
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge import StandardJudge
from cutegen_lab.judge.checks.sanitizers import TOOLS, WORKLOADS
from cutegen_lab.problems import read_text
from tests.judge.test_judge import SOFTMAX, softmax
from tests.judge.torch_device import TorchDevice, artifact_for


class InspectingDevice(TorchDevice):
    """``answers`` gives each tool's; a tool it does not name finds nothing."""

    def __init__(self, answers: dict[SanitizerTool, Inspection]) -> None:
        super().__init__(softmax)
        self.answers = answers
        self.asked: list[SanitizerTool] = []

    def inspect(self, tool: SanitizerTool, build: Build, buffers: Sequence[memoryview], cancel: Cancel) -> Inspection:
        self.asked.append(tool)
        return self.answers.get(tool, Inspection())


def judged(device: TorchDevice, deep: bool = True) -> CheckResult:
    task = read_text(SOFTMAX, inputs_text="x: f32[64,512]")
    return StandardJudge(deep=deep).check(
        task, artifact_for(task, device), device, lambda line: None, threading.Event()
    )


def test_every_tool_looks_at_the_smallest_workloads_and_only_when_asked() -> None:
    device = InspectingDevice({})
    result = judged(device)
    assert result.verdict is Verdict.PASSED, result.reason
    assert device.asked == [tool for tool in TOOLS for _ in range(WORKLOADS)]
    assert {c.distribution for c in result.checks} >= set(TOOLS)
    shallow = InspectingDevice({})
    assert judged(shallow, deep=False).verdict is Verdict.PASSED and shallow.asked == []


def test_a_finding_is_the_verdict() -> None:
    fault = Fault(Verdict.OUT_OF_BOUNDS, "compute-sanitizer memcheck: invalid read", line=12)
    result = judged(InspectingDevice({"memcheck": Inspection(fault)}))
    assert result.verdict is Verdict.OUT_OF_BOUNDS
    assert "invalid read [line 12]" in result.reason
    assert result.checks[-1].fault is fault


def test_a_tool_that_cannot_look_is_asked_once_and_named() -> None:
    device = InspectingDevice({"racecheck": Inspection(note="compute-sanitizer is not installed")})
    result = judged(device)
    assert result.verdict is Verdict.PASSED
    assert "compute-sanitizer is not installed" in result.reason
    assert device.asked.count("racecheck") == 1


def test_a_device_without_sanitizers_is_judged_as_ever() -> None:
    assert judged(TorchDevice(softmax)).verdict is Verdict.PASSED

"""Kernels that call printf are checked on an emulator and their output is shown, but they are never accepted.

A format string is a variable of the GPU module and outlives a launch, so a kernel that prints has memory that no check
covers. Printing is allowed because people use it to find out what a wrong kernel does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.protocols import Cancel, Device, Execution
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.trial import CheckResult, Profile, Timing
from cutegen_lab.core.verdict import Fault, Verdict

ADVICE = "a kernel that prints is not accepted: leave printf out when you have seen enough"
MOST_LINES = 40


def uses_printf(artifact: Artifact) -> bool:
    """Whether any build calls printf."""
    return any(build.prints for build in artifact.builds.values())


class PrintRecorder:
    """``device``, recording the printed output of the first and the last execution."""

    kind: Literal["cuda", "emulator"]

    def __init__(self, device: Device) -> None:
        self._device = device
        self.name, self.kind, self.torch_device = device.name, device.kind, device.torch_device
        self.first, self.last = "", ""

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        counting: bool = True, flops: int = 0,
    ) -> Execution:  # fmt: skip
        """:meth:`Device.execute` of the device, recording what is printed. Raises Cancelled."""
        execution = self._device.execute(build, tensors, buffers, cancel, counting, flops)
        self.last = execution.printed
        self.first = self.first or self.last
        return execution

    def time(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], gpu: GpuSpec, cancel: Cancel
    ) -> tuple[Timing | Fault, Profile | None]:
        """:meth:`Device.time` of the device."""
        return self._device.time(build, tensors, buffers, gpu, cancel)

    def close(self) -> None:
        self._device.close()


def with_printed_output(result: CheckResult, recorder: PrintRecorder) -> CheckResult:
    """``result`` with printed output: of the run that failed, or of the first run if all passed."""
    if result.verdict in (Verdict.PASSED, Verdict.INCONCLUSIVE):
        where = result.checks[0] if result.checks else None
        on = f" (the first run of {where.workload}, {where.distribution} inputs)" if where else ""
        reason = f"{ADVICE}; its answers were right. It printed{on}:\n{_shortened(recorder.first)}"
        return replace(result, verdict=Verdict.CONTRACT, reason=reason)
    return replace(result, reason=f"{result.reason}. It printed:\n{_shortened(recorder.last)}")


def _shortened(text: str) -> str:
    lines = text.splitlines()
    more = [f"… and {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    return "\n".join(lines[:MOST_LINES] + more) or "(nothing)"

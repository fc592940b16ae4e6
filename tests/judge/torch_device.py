"""A device for the judge's tests: "executes" a build by calling a Python function on the host buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch

from cutegen_lab.core.artifact import Artifact, Build, KernelInfo, Launch, LaunchPlan, Relocation
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.protocols import Cancel, Execution
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.core.trial import Profile, Timing
from cutegen_lab.core.verdict import Fault
from cutegen_lab.judge import select_workloads
from cutegen_lab.problems.dtypes import TORCH

Kernel = Callable[..., Fault | None]


class TorchDevice:
    """``kernel(*tensors)`` gets every tensor of the plan and writes the outputs in place."""

    name = "torch"
    kind: Literal["cuda", "emulator"] = "emulator"

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel
    ) -> Execution:
        views = [
            torch.frombuffer(b, dtype=TORCH[t.dtype]).reshape(t.shape) for t, b in zip(tensors, buffers, strict=True)
        ]
        return Execution(self._kernel(*views), 0.0)

    def time(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], gpu: GpuSpec, cancel: Cancel
    ) -> tuple[Timing | Fault, Profile | None]:
        return Timing("predicted", sum(t.nbytes for t in tensors) / gpu.copy_bytes_per_s * 1e6, "copy", self.name), None

    def close(self) -> None:
        pass


def artifact_for(problem: Problem, device: TorchDevice) -> Artifact:
    """An artifact whose plans name every tensor once; its cubin is never looked at by a TorchDevice."""
    builds = {}
    for workload in (*select_workloads(problem, device), problem.workload):
        count = len(workload.tensors)
        relocations = tuple(Relocation(i, 0, i, 0) for i in range(count))
        launch = Launch("k", (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, (bytes(8),) * count, relocations)
        kernels = (KernelInfo("k", 16, 0, 0, 0, 0, (8,) * count),)
        builds[workload.name] = Build(workload.signature, "sm_90a", b"", "", kernels, LaunchPlan((launch,)))
    return Artifact("", {}, "sm_90a", "", builds)

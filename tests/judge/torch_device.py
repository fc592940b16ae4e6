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
    """``kernel(*tensors)`` gets every tensor that the plan's one launch points at, and writes the outputs in place."""

    name = "torch"
    torch_device = "cpu"

    def __init__(self, kernel: Kernel, kind: Literal["cuda", "emulator"] = "emulator") -> None:
        self._kernel, self.kind = kernel, kind
        self.addresses: list[tuple[int, ...]] = []  # of each execution's tensors, as the kernel saw them

    def execute(
        self, build: Build, tensors: Sequence[TensorSpec], buffers: Sequence[memoryview], cancel: Cancel,
        counting: bool = True, flops: int = 0,
    ) -> Execution:  # fmt: skip
        views = []
        for r in build.plan.launches[0].relocations:
            spec, memory = tensors[r.tensor], buffers[r.tensor]
            flat = torch.frombuffer(memory, dtype=TORCH[spec.dtype], count=spec.numel, offset=r.tensor_offset)
            views.append(flat.reshape(spec.shape))
        self.addresses.append(tuple(v.data_ptr() for v in views))
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

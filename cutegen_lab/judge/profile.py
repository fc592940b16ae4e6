"""Profiles of a candidate from the emulator or a GPU's profiler, in one schema."""

from __future__ import annotations

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.protocols import Cancel, Device, Profiles
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import Profile
from cutegen_lab.judge.draws.inputs import fill
from cutegen_lab.judge.execution.buffers import POISONS, Buffers


def profile(problem: Problem, artifact: Artifact, device: Device, seed: int, cancel: Cancel) -> Profile | str:
    """Counters of the main workload on ``device``, or a text that says why there are none. Raises Cancelled."""
    workload = problem.workload
    build = artifact.builds[workload.name]
    buffers = Buffers(workload, build, fill(workload, seed), POISONS[0])
    if isinstance(device, Profiles):
        return device.profile(buffers.build, buffers.views, cancel)
    timing, found = device.time(build, buffers.tensors, buffers.views, target_gpu(artifact.arch), cancel)
    return found if found is not None else f"{device.name} counts nothing: {timing}"

"""Profiles of a candidate from the emulator or a GPU's profiler, in one schema."""

from __future__ import annotations

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.protocols import Cancel, Device, Profiles, Records
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.timeline import Timeline
from cutegen_lab.core.trial import Profile
from cutegen_lab.judge.draws.inputs import fill
from cutegen_lab.judge.execution.buffers import POISONS, Buffers


def profile(problem: Problem, artifact: Artifact, device: Device, seed: int, cancel: Cancel) -> Profile | str:
    """Counters of the main workload on ``device``, or the reason why there are none. Raises Cancelled."""
    buffers = _buffers(problem, artifact, seed)
    if isinstance(device, Profiles):
        return device.profile(buffers.build, buffers.views, cancel)
    build = artifact.builds[problem.workload.name]
    timing, found = device.time(build, buffers.tensors, buffers.views, target_gpu(artifact.arch), cancel)
    return found if found is not None else f"{device.name} counts nothing: {timing}"


def timelines(
    problem: Problem, artifact: Artifact, device: Device, seed: int, cancel: Cancel
) -> tuple[Timeline, ...] | str:
    """What the warps of one block of each launch do, or the reason why that is not known. Raises Cancelled."""
    if not isinstance(device, Records):
        return f"{device.name} does not record what warps do"
    buffers = _buffers(problem, artifact, seed)
    return device.timelines(buffers.build, buffers.tensors, buffers.views, cancel)


def _buffers(problem: Problem, artifact: Artifact, seed: int) -> Buffers:
    """Tensors of the main workload, its inputs drawn."""
    workload = problem.workload
    return Buffers(workload, artifact.builds[workload.name], fill(workload, seed), POISONS[0])

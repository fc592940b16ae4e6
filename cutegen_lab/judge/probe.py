"""A quick test of a build: one draw of each workload. Only the judge gives a verdict."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Cancel, Device
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.judge.checks.case import Case
from cutegen_lab.judge.draws.schedule import draws
from cutegen_lab.problems import Reference


class Probe:
    """Called with an artifact, returns what is wrong with it on the first of ``workloads`` that fails, or "". At least
    one workload must have a build. Raises Cancelled."""

    def __init__(self, problem: Problem, workloads: Sequence[Workload], device: Device, cancel: Cancel) -> None:
        self._problem, self._reference = problem, Reference(problem)
        self._workloads, self._device, self._cancel = workloads, device, cancel

    def __call__(self, artifact: Artifact) -> str:
        gpu, served = target_gpu(artifact.arch), [w for w in self._workloads if w.name in artifact.builds]
        if not served:
            return "constraints() rules out every workload"
        for turn, workload in enumerate(served):
            build = artifact.builds[workload.name]
            case = Case(self._problem, self._reference, workload, build, self._device, gpu, self._cancel)
            distribution = draws(workload, turn, len(served), 0.5)[0]
            check = case.run(distribution, secrets.randbits(63), first=True)
            if check is not None and not check.verdict.passed:
                return f"{check.verdict.value.replace('_', ' ')} on {workload.name}: {check.reason}"
        return ""

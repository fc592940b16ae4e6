"""Predicted waits by line of the candidate's text."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cutegen_lab.core.artifact import Launch
from cutegen_lab.core.predicted import ARRIVAL, BARRIERS, CLUSTER, LOADS, STAGES
from cutegen_lab.core.roofline import GpuSpec
from cutegen_lab.perfmodel.findings import ByLine
from cutegen_lab.perfmodel.occupancy import Occupancy
from cutegen_lab.perfmodel.traffic import Traffic
from cutegen_lab.perfmodel.waits import answers_us, barriers_us, cluster_us, exchanges_us, instructions_us


def stalls_us(
    waited: Mapping[str, float], lines: ByLine, counters: Mapping[str, float], launch: Launch, shape: Occupancy,
    moved: Traffic, gpu: GpuSpec,
) -> dict[int, float]:  # fmt: skip
    """Microseconds of ``waited``, a launch's waits, by line: each wait is distributed in proportion to the model's time
    for the counters of ``lines`` that cause it. Line 0 has the waits that no line causes: block starts and the busiest
    unit."""
    causes = {line: _causes(own, counters, launch, shape, moved, gpu) for line, own in lines.items()}
    found = dict.fromkeys((0, *lines), 0.0)
    for name, wait_us in waited.items():
        total = sum(cause.get(name, 0.0) for cause in causes.values())
        if not total:
            found[0] += wait_us
            continue
        for line, cause in causes.items():
            found[line] += wait_us * cause.get(name, 0.0) / total
    return found


def _causes(
    own: Mapping[str, float], counters: Mapping[str, float], launch: Launch, shape: Occupancy, moved: Traffic,
    gpu: GpuSpec,
) -> dict[str, float]:  # fmt: skip
    """By wait: the part of a line with the counters ``own``, in microseconds or, for stages, as a fraction of all
    mbarrier waits. Bulk copies and data of other blocks are waited for at mbarriers."""
    blocks = math.prod(launch.grid)
    warps = blocks * -(-math.prod(launch.block) // 32)
    answers = answers_us(own, counters, warps, moved, shape)
    asked = own.get("mbarrier_waits", 0.0) / max(counters.get("mbarrier_waits", 0.0), 1.0)
    return {
        LOADS: answers,
        ARRIVAL: answers,
        STAGES: asked,
        BARRIERS: barriers_us(own, blocks, warps, gpu),
        CLUSTER: cluster_us(own, launch, warps) + asked * exchanges_us(counters, blocks),
        **instructions_us(own, warps, gpu),
    }

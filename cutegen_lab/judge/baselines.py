"""What of PyTorch a candidate is timed beside, and which of it is *the* baseline: the fastest."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from cutegen_lab.core.problem import Problem
from cutegen_lab.core.stopwatch import ReferenceKind

REFERENCES: Mapping[ReferenceKind, str] = {
    "eager": "eager PyTorch", "channels_last": "eager PyTorch, channels_last", "compile": "torch.compile",
    "max-autotune": "torch.compile max-autotune",
}  # fmt: skip


def kinds(problem: Problem, asked: Sequence[ReferenceKind]) -> tuple[ReferenceKind, ...]:
    """Those ``asked`` for, and beside eager PyTorch the layout that its convolutions of images are fastest in."""
    images = problem.images and "eager" in asked and "channels_last" not in asked
    return (*asked, "channels_last") if images else tuple(asked)


def fastest(times_us: Mapping[str, Sequence[float]]) -> str:
    """The baseline's name by its median; empty where nothing of PyTorch was timed."""
    medians = {name: statistics.median(times_us[name]) for name in REFERENCES.values() if times_us.get(name)}
    return min(medians, key=medians.__getitem__, default="")

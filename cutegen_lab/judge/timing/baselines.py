"""PyTorch baselines of a timing, and the choice of *the* baseline: the fastest."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from cutegen_lab.core.problem import Problem
from cutegen_lab.core.stopwatch import EAGER, ReferenceKind

REFERENCES: Mapping[ReferenceKind, str] = {
    "eager": EAGER, "channels_last": "eager PyTorch, channels_last", "compile": "torch.compile",
    "max-autotune": "torch.compile max-autotune",
}  # fmt: skip


def baseline_kinds(problem: Problem, asked: Sequence[ReferenceKind]) -> tuple[ReferenceKind, ...]:
    """The ``asked`` baselines, and channels_last along with eager for convolutions of images."""
    images = problem.images and "eager" in asked and "channels_last" not in asked
    return (*asked, "channels_last") if images else tuple(asked)


def fastest_baseline(times_us: Mapping[str, Sequence[float]]) -> str:
    """Name of the baseline with the smallest median; empty if no PyTorch baseline was timed."""
    medians = {name: statistics.median(times_us[name]) for name in REFERENCES.values() if times_us.get(name)}
    return min(medians, key=medians.__getitem__, default="")

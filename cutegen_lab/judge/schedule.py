"""Which draws a workload gets, and in which order: all of them where it is small, the most telling where it is not."""

from __future__ import annotations

from itertools import zip_longest

from cutegen_lab.core.problem import Workload
from cutegen_lab.core.protocols import Device, Execution
from cutegen_lab.judge.inputs import AROUND, distributions

EMULATED_INSTRUCTIONS = 200_000  # warp instructions a workload, all its draws together: a tenth of a second
GPU_BYTES = 8 << 30  # compulsory traffic of all draws of a workload
FEWEST_ON_GPU = 10


def draws(workload: Workload, turn: int, turns: int, secret: float, tf32: bool = False) -> tuple[str, ...]:
    """Every draw of ``workload``, the first always normal.

    ``turn`` of ``turns`` counts workloads: where not all draws are affordable, neighbours leave out different ones.
    Means are spread over a whole trial, so theirs come early on each. ``secret`` (0 to 1) is one for all of it, as
    ``tf32`` is.
    """
    first, *others = distributions(workload, turn, turns, secret, tf32)
    around = [name for name in others if name.startswith(AROUND)]
    rest = [name for name in others if name not in around]
    start = 5 * turn % len(rest)
    pairs = zip_longest(around, [*rest[start:], *rest[:start]])
    return first, *(name for pair in pairs for name in pair if name is not None)


def affordable(workload: Workload, count: int, device: Device, execution: Execution) -> int:
    """How many of ``count`` draws to run, after the first ran as ``execution``."""
    if device.kind == "cuda":
        return min(count, max(FEWEST_ON_GPU, GPU_BYTES // max(workload.compulsory_bytes, 1)))
    spent = execution.counters.get("warp_instructions", 0.0)
    return count if spent == 0 else min(count, max(1, int(EMULATED_INSTRUCTIONS / spent)))

"""Which draws a workload gets, and in which order: all of them where it is small, the most telling where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from cutegen_lab.core.problem import Workload
from cutegen_lab.core.protocols import Device, Execution
from cutegen_lab.judge.inputs import AROUND, ESSENTIAL, distributions
from cutegen_lab.judge.structured import EVERYWHERE, PATCHWORK, SIZED

EMULATED_INSTRUCTIONS = 200_000  # warp instructions a workload, all its draws together: a tenth of a second
GPU_BYTES = 8 << 30  # compulsory traffic of all draws of a workload
FEWEST_ON_GPU = 10
FEWEST = ("normal", PATCHWORK)  # of an expensive workload: together they hold every kind of float


def draws(workload: Workload, turn: int, turns: int, secret: float, tf32: bool = False) -> tuple[str, ...]:
    """Every draw of ``workload``: normal values first, then those that no verdict is given without.

    ``turn`` of ``turns`` counts workloads: where not all draws are affordable, neighbours leave out different ones.
    Means are spread over a whole trial, and so are small sizes: theirs come early on each, in turns. ``secret`` (0 to
    1) is one for all of it, as ``tf32`` is.
    """
    names = distributions(workload, turn, turns, secret, tf32)
    telling = (*EVERYWHERE, *ESSENTIAL) if not workload.derived else (*ESSENTIAL, *EVERYWHERE)  # of one kind: clearer
    first = [name for name in ("normal", *telling) if name in names]
    spread = [[name for name in names if name.startswith(start)] for start in (AROUND, SIZED)]
    early = [name for pair in zip_longest(*spread[:: 1 if turn % 2 else -1]) for name in pair if name is not None]
    rest = [name for name in names if name not in {*first, *early}]
    start = 5 * turn % max(len(rest), 1)
    pairs = zip_longest([*rest[start:], *rest[:start]], early)
    return *first, *(name for pair in pairs for name in pair if name is not None)


def affordable(workload: Workload, names: Sequence[str], device: Device, execution: Execution) -> int:
    """How many of the draws ``names`` to run, after the first ran as ``execution``.

    What a kernel costs decides how many more than the fewest: none is so slow that its small workloads go without
    zeros, large numbers, NaN and infinities, one more kind and one mean or small size, or the analyst's own without a
    draw that holds them all.
    """
    count = len(names)
    if device.kind == "cuda":
        return min(count, max(FEWEST_ON_GPU, GPU_BYTES // max(workload.compulsory_bytes, 1)))
    spent = execution.counters.get("warp_instructions", 0.0)
    fewest = sum(name in FEWEST for name in names)
    if workload.derived:
        fewest = sum(name in ("normal", *ESSENTIAL, *EVERYWHERE) for name in names) + 2
    return count if spent == 0 else min(count, max(fewest, int(EMULATED_INSTRUCTIONS / spent)))

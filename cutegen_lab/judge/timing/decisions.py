"""What the samples of a timing decide: whether the candidate lost, and notes about their spread."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cutegen_lab.core.stopwatch import INCUMBENT
from cutegen_lab.core.trial import Measurement
from cutegen_lab.judge.timing.confidence import comparison, relative_half_width
from cutegen_lab.judge.timing.interleaved import Effort, Times

CANDIDATE = "candidate"
LOST = 0.03  # timing ends once the candidate is certainly slower than the accepted kernel by more than this fraction


def comparison_decided(times: Times) -> bool:
    """Whether the comparison with the accepted kernel is no longer ambiguous, or the accepted kernel has failed."""
    return INCUMBENT not in times or comparison(INCUMBENT, times[CANDIDATE], times[INCUMBENT]).answer != "ambiguous"


def is_slower(times: Times) -> bool:
    """Whether the candidate is slower than the accepted kernel by more than ``LOST``, by the 95% interval."""
    return INCUMBENT in times and comparison(INCUMBENT, times[CANDIDATE], times[INCUMBENT]).low > 1 + LOST


def width_notes(times: Times, effort: Effort) -> list[str]:
    """Notes on subjects whose 95% interval is still wider than ``effort.half_width``."""
    widths = {name: relative_half_width(samples) for name, samples in times.items()}
    unsure = {name: width for name, width in widths.items() if width > effort.half_width}
    rounds = len(times[CANDIDATE])
    if unsure and is_slower(times):
        return [
            f"only {rounds} rounds were timed: the candidate is slower than the accepted kernel by more than {LOST:.0%}"
        ]
    return [
        f"{name}: after {rounds} rounds the 95% interval of the median is still "
        + (f"±{width:.1%}" if math.isfinite(width) else "unknown")
        for name, width in unsure.items()
    ]


def clock_notes(what: str, clocks: Sequence[tuple[Measurement, Measurement]]) -> list[str]:
    """Note if the candidate's two clocks (CUDA graph, and ``what``) differ by more than those of other subjects. The
    candidate's pair is the first of ``clocks``.

    Each clock has its own overhead or omission (such as data that a single call leaves in L2), which affects all
    subjects alike. Only the difference beyond that and all intervals is noted.
    """
    apart = [(single.time_us - graph.time_us, single.half_width_us + graph.half_width_us) for graph, single in clocks]
    (mine, spread), *others = apart
    least = min((d for d, _ in others), default=0.0)
    most = max((d for d, _ in others), default=0.0)
    room = spread + max((s for _, s in others), default=0.0)
    if least - room <= mine <= most + room:
        return []
    usual = most if mine > most else least
    beyond = f", beyond the {abs(usual):.2g} µs that other subjects' clocks differ by" if others else ""
    graph, single = clocks[0]
    return [
        f"{what} takes {single.time_us:.4g} µs, {abs(mine - usual):.2g} µs {'longer' if mine > usual else 'shorter'} "
        f"than in the graph ({graph.time_us:.4g} µs){beyond}: more than the spread"
    ]

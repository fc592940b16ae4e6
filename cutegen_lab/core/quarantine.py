"""Measured times that no kernel can take."""

from __future__ import annotations

from cutegen_lab.core.roofline import SpeedOfLight
from cutegen_lab.core.trial import Timing

LEAST_OF_BOUND = 0.97
"""Fraction of the speed of light below which a measured time is impossible rather than noisy."""


def under_bound(timing: Timing | None, sol: SpeedOfLight | None) -> str:
    """Why a measured time is quarantined: it is below what any kernel can take, so the time or the bound is wrong. ""
    for other times. The judge's own floor (``too_fast``) does not count matrix operations, nor where PyTorch is below
    it too."""
    if timing is None or sol is None or timing.kind != "measured" or timing.time_us >= LEAST_OF_BOUND * sol.time_us:
        return ""
    times = f"{timing.time_us:.3g} µs where no kernel can take less than {sol.time_us:.3g} µs"
    return f"under the bound: {times}; the time or the bound is wrong"

"""How much faster a search's best config is than the default one."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.core.stopwatch import INCUMBENT
from cutegen_lab.core.trial import Timing


@dataclass(frozen=True)
class Gain:
    """The best config compared with the default one."""

    faster: bool
    """Whether the best is faster; if measured in the same rounds, whether that is proven."""
    text: str
    """The comparison as a predicate of "the best config"."""


def gain_over_default(same: bool, timing: Timing, default_us: float | None) -> Gain:
    """``same``: the best config is the default. ``timing``: the time of the best, whose incumbent is the default.
    ``default_us``: the default's time in the search; None if it did not run."""
    if same:
        return Gain(False, "is the default")
    if found := timing.against(INCUMBENT):
        words = {"same": "is as fast as the default", "ambiguous": "is not proven faster than the default"}
        text = words.get(found.answer) or _difference(found.ratio)
        return Gain(
            found.better,
            f"{text} ({found.ratio:.3g} of its time, interleaved; 95%: {found.low:.3g} to {found.high:.3g})",
        )
    if default_us is None:
        return Gain(True, "ran, and the default did not")
    if f"{timing.time_us:.3g}" == f"{default_us:.3g}":  # as they are shown
        return Gain(False, "is as fast as the default")
    ratio = timing.time_us / default_us
    return Gain(ratio < 1, _difference(ratio))


def _difference(ratio: float) -> str:
    """``ratio``: the time of the best, divided by the default's."""
    return f"takes {100 * abs(1 - ratio):.2g}% {'less' if ratio < 1 else 'more'} time than the default"

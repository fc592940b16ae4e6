"""Where a run stands among others: its fastest kernel, and how much faster it is than the baseline or the first
kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cutegen_lab.core.run import RunState


@dataclass(frozen=True)
class Standing:
    """A run's fastest kernel."""

    candidate_id: str
    """The candidate."""
    time_us: float
    """Its time in microseconds."""
    kind: Literal["measured", "predicted"]
    """Whether the time was measured or predicted."""
    speedup: float | None = None
    """Speedup over :attr:`over`; None if there is nothing to compare it with."""
    over: str = ""
    """What :attr:`speedup` is relative to: the fastest PyTorch baseline timed with the candidate, or else the first
    candidate that passed."""


def best_id(state: RunState) -> str | None:
    """The fastest candidate that passed and was not rejected; predicted times count only if none is measured."""
    rejected = {key for key, answer in state.answers.items() if answer.kind == "reject"}
    timed = [
        (key, t.timing)
        for key, t in state.trials.items()
        if t.timing is not None and t.verdict.passed and key not in rejected
    ]
    measured = [found for found in timed if found[1].kind == "measured"]
    return min(measured or timed, key=lambda found: found[1].time_us, default=(None, None))[0]


def standing(state: RunState) -> Standing | None:
    """The standing of a run; None before a candidate passed and was timed."""
    best = best_id(state)
    timing = state.trials[best].timing if best is not None else None
    if best is None or timing is None:
        return None
    if other := timing.baselines.get(timing.baseline):
        over = timing.baseline
    else:
        alike = {
            key: t.timing.time_us
            for key, t in state.trials.items()
            if t.verdict.passed and t.timing is not None and t.timing.kind == timing.kind
        }
        over = next(key for key in state.candidates if key in alike)
        other = alike[over]
    compared = over != best and timing.time_us > 0
    return Standing(
        best, timing.time_us, timing.kind, other / timing.time_us if compared else None, over if compared else ""
    )

"""What the result of a problem is worth, from what the judge and the run know."""

from __future__ import annotations

from cutegen_lab.core.run import RunState
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.judge.timing.measured import FLOOR_MARGIN
from cutegen_lab.suite.record import Integrity

FEW_CHECKS = 20
"""A kernel with fewer checks is labelled: most have more than a hundred."""


def integrity_of(state: RunState, bound_us: float, degenerate: bool) -> Integrity:
    """The label of a run's result; the first that applies.

    "quarantined": the accepted kernel's time is below ``bound_us`` (microseconds), or nothing was accepted and a
    candidate's was; "degenerate": the problem is; "not proven": the accepted kernel did not pass, as when an analyst
    approves an inconclusive one; "few checks": it passed fewer than :data:`FEW_CHECKS` checks; "passed". "" without an
    accepted kernel.
    """
    trial = state.trials.get(state.incumbent_id or "")
    if trial is None:
        return "quarantined" if too_fast(state) else ""
    if trial.timing is not None and _below(trial.timing, bound_us):
        return "quarantined"
    if degenerate:
        return "degenerate"
    if not trial.verdict.passed:
        return "not proven"
    return "few checks" if trial.check is None or len(trial.check.checks) < FEW_CHECKS else "passed"


def too_fast(state: RunState) -> int:
    """Number of candidates whose times the judge refused, because they were below the bound."""
    return sum(trial.verdict is Verdict.TOO_FAST for trial in state.trials.values())


def _below(timing: Timing, bound_us: float) -> bool:
    """Whether a measured time is below the bound by more than noise. If the fastest baseline is too, the bound is
    wrong, as in the judge's own rule."""
    least = FLOOR_MARGIN * bound_us
    return timing.kind == "measured" and timing.time_us < least <= timing.baselines.get(timing.baseline, least)

"""Whether a candidate is faster than the accepted kernel, and whether the scope of an approval still covers the
candidate. An ambiguous comparison with the incumbent never counts as faster."""

from __future__ import annotations

from cutegen_lab.core.predicted import attainable_us
from cutegen_lab.core.run import RunState, Step
from cutegen_lab.core.stopwatch import COPY, INCUMBENT
from cutegen_lab.core.trial import Timing, Trial

MARGIN = {"measured": 0.01, "predicted": 0.0}
"""Minimum relative gain over the fastest accepted candidate, if the two were not timed in the same rounds: measured
times are noisy, predicted ones are not."""

TIE = 0.01
"""Fraction of the accepted kernel's time that a change must save to count as a gain in new runs."""

COME_TRUE = ((0.0, 7), (0.05, 8), (0.10, 9), (0.20, 10))
"""(minimum predicted gain, which is 1 - new time / old time; how many of ten such gains come true when both kernels are
measured), from benchmarks/perfmodel/predicted_gains.py."""

_WORDS = {"slower": "slower", "same": "not faster", "ambiguous": "not proven faster"}


def come_true(gain: float) -> int:
    """How many of ten predicted gains of this size come true when measured, for a ``gain`` (1 - new time / old time) of
    at least 0."""
    return max(of_ten for least, of_ten in COME_TRUE if gain >= least)


def predicted_odds(candidate_id: str, state: RunState) -> int | None:
    """:func:`come_true` of a candidate's predicted gain over the current kernel; None if either has no predicted time
    or the candidate is not faster."""
    mine, other = (state.trials.get(each or "") for each in (candidate_id, state.incumbent_id))
    if mine is None or other is None or mine.timing is None or other.timing is None:
        return None
    gain = 1 - mine.timing.time_us / other.timing.time_us
    predicted = mine.timing.kind == other.timing.kind == "predicted"
    return come_true(gain) if predicted and gain > 0 else None


def scope_end(state: RunState) -> str:
    """Why the analyst is asked at review although an approval has a scope; "" while the scope still approves."""
    scope, current = state.scope, state.current_id
    trial = state.trials.get(current) if current else None
    if scope is None or state.step is not Step.REVIEW:
        return ""
    if state.failed_step is not None:
        return f"{state.failed_step.value} failed"
    if trial is None or not trial.verdict.passed:
        return f"{current} ended {trial.verdict.value.replace('_', ' ')}" if trial else "there is nothing to review"
    if slower := not_faster(trial.timing, state):
        return f"{current} is {slower}"
    if scope.until == "steps" and state.scope_used >= scope.steps:
        return f"{scope.steps} of {scope.steps} steps approved"
    least_us = floor_us(trial, state)
    if scope.until == "floor" and trial.timing and trial.timing.time_us <= (1 + scope.within) * least_us:
        return f"{current} takes {trial.timing.time_us:.3g} µs, and the floor is {least_us:.3g} µs"
    return ""


def floor_us(trial: Trial, state: RunState) -> float:
    """Microseconds that no kernel is expected to beat: the measured copy of the compulsory bytes (for a measured time)
    or the attainable time (for a predicted one); the speed of light if that is unknown."""
    if trial.timing is not None and trial.timing.kind == "measured":
        return trial.timing.baselines.get(COPY, state.sol.time_us)
    return (attainable_us(trial.profile, state.sol) if trial.profile else None) or state.sol.time_us


def not_faster(timing: Timing | None, state: RunState) -> str:
    """Why ``timing`` does not prove that the candidate is faster than the accepted kernel, or "". Equal speed is not
    accepted."""
    best = fastest_accepted(state)
    if timing is None:
        return "it passed but has no time to compare"
    if best is None:
        return f"{state.incumbent_id} has no time to compare with"
    if (timing.kind, timing.device) != (best.kind, best.device):
        return f"a {timing.kind} time on {timing.device} cannot be compared with a {best.kind} one on {best.device}"
    found = timing.against(INCUMBENT)
    if found and state.incumbent_id and best == state.trials[state.incumbent_id].timing:
        interval = (
            f"{found.ratio:.4g} of {state.incumbent_id}'s time, interleaved (95%: {found.low:.4g} to {found.high:.4g})"
        )
        return "" if found.better else f"{_WORDS[found.answer]}: {interval}"
    margin = MARGIN[timing.kind]
    if timing.time_us < best.time_us * (1 - margin):
        return ""
    change = (timing.time_us / best.time_us - 1) * 100
    word = "slower" if change > 100 * margin else "not faster"
    needed = f" (margin {margin:.0%})" if margin else ""
    return f"{word}: {timing.time_us:.4g} µs {timing.kind}, {change:+.2g}% against {best.time_us:.4g} µs{needed}"


def fastest_accepted(state: RunState) -> Timing | None:
    """Best time of the accepted candidates with the incumbent's kind of timing and device; None if the incumbent has no
    time.

    The fastest, not the latest: otherwise many small steps within the margin could add up to a slow kernel.
    """
    incumbent = state.trials.get(state.incumbent_id) if state.incumbent_id else None
    if incumbent is None or incumbent.timing is None:
        return None
    basis = (incumbent.timing.kind, incumbent.timing.device)
    timings = [t.timing for i in state.accepted if (t := state.trials.get(i)) and t.timing]
    return min((t for t in timings if (t.kind, t.device) == basis), key=lambda t: t.time_us)

"""The auto policy: answers at review by itself. With an incumbent, an ambiguous comparison is never accepted."""

from __future__ import annotations

from cutegen_lab.core.growth import repeats_itself
from cutegen_lab.core.run import Answer, RunState
from cutegen_lab.core.stopwatch import INCUMBENT
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.loop.budget import spent

MARGIN = {"measured": 0.01, "predicted": 0.0}
"""How much faster than the fastest accepted candidate is faster, where the two were not timed in turns: a clock is
noisy, a model is not."""

_WORDS = {"slower": "slower", "same": "not faster", "ambiguous": "not proven faster"}

STUMBLES = 2
"""Our own failures in a row after which an unattended run gives up."""


def auto_answer(state: RunState) -> Answer:
    """The answer for ``state`` at review."""
    current = state.current_id
    if state.failed_step is not None:
        if state.stumbles < STUMBLES and not repeats_itself(state):
            return Answer("retry", current, by="auto")
        return Answer("stop", current, text=state.problem_note, by="auto")
    trial = state.trials.get(current) if current else None
    if trial is None:
        return Answer("stop", current, text="nothing to review", by="auto")
    if not trial.verdict.passed:
        reason = f"{trial.verdict.value}: {trial.reason}"
        if state.incumbent_id is None or spent(state):
            left = "" if trial.verdict is Verdict.INCONCLUSIVE else "no fix left; "
            return Answer("stop", current, text=f"{left}the last candidate ended {reason}", by="auto")
        return Answer("reject", current, text=reason, by="auto")
    if state.incumbent_id is None:
        return Answer("approve", current, text="the first candidate to pass", by="auto")
    reason = not_faster(trial.timing, state)
    return Answer("reject" if reason else "approve", current, text=reason or "passed and faster", by="auto")


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
            f"{found.ratio:.4g} of {state.incumbent_id}'s time in turns (95%: {found.low:.4g} to {found.high:.4g})"
        )
        return "" if found.better else f"{_WORDS[found.answer]}: {interval}"
    margin = MARGIN[timing.kind]
    if timing.time_us < best.time_us * (1 - margin):
        return ""
    change = (timing.time_us / best.time_us - 1) * 100
    word = "slower" if change > 100 * margin else "not faster"
    needed = f" (margin {margin:.0%})" if margin else ""
    return f"{word}: {timing.time_us:.4g} µs {timing.kind}, {change:+.2g}% beside {best.time_us:.4g} µs{needed}"


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

"""The course of a run: what each of its candidates cost and gained, for policies that decide when to stop."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.core.gains import floor_us
from cutegen_lab.core.run import Generated, GenerateFailed
from cutegen_lab.loop.history import History


@dataclass(frozen=True)
class Attempt:
    """One candidate."""

    tokens: int = 0
    """Tokens of its answer, and of answers before it that became no candidate."""
    time_us: float | None = None
    """Its time in microseconds; None if it was not accepted, as it failed or was not faster."""
    floor_us: float | None = None
    """Time that no kernel is expected to beat, in microseconds; None if it was not accepted."""


@dataclass(frozen=True)
class Course:
    """The candidates of one problem, in order."""

    name: str
    """The problem."""
    attempts: tuple[Attempt, ...]
    """Its candidates."""

    @property
    def tokens(self) -> int:
        return sum(attempt.tokens for attempt in self.attempts)

    def best_us(self, count: int | None = None) -> float | None:
        """Time of the fastest accepted one of the first ``count`` candidates (default: all); None without any."""
        return min((a.time_us for a in self.attempts[:count] if a.time_us is not None), default=None)


def course_of(name: str, history: History) -> Course:
    """The course of a run. Tokens of answers after the last candidate belong to no attempt."""
    state, attempts, wasted = history.state, list[Attempt](), 0
    for stored in history.events:
        event = stored.event
        if isinstance(event, GenerateFailed):
            wasted += event.usage.total
        if not isinstance(event, Generated):
            continue
        trial = state.trials.get(event.candidate.id)
        tokens, wasted = event.candidate.proposal.usage.total + wasted, 0
        if trial is None or trial.timing is None or trial.candidate_id not in state.accepted:
            attempts.append(Attempt(tokens))
        else:
            attempts.append(Attempt(tokens, trial.timing.time_us, floor_us(trial, state)))
    return Course(name, tuple(attempts))

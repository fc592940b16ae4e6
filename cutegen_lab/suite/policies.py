"""Budget policies by replay: what each would have saved on recorded runs, and the speed that it would have kept.

After the budgets of arXiv 2603.29010: a problem's run ends once its kernel is near enough to the floor, or after
candidates that gained nothing; or candidates go, one after another, to the problem where most is expected of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from cutegen_lab.core.gains import TIE
from cutegen_lab.core.plain_text import plain
from cutegen_lab.suite.courses import Course
from cutegen_lab.views.text import columns

WITHIN = (0.01, 0.02, 0.05, 0.10)
"""Distances from the floor, as fractions of it."""
PATIENCE = (1, 2, 3)
"""Numbers of candidates without a gain."""
SHARES = (0.25, 0.5, 0.75)
"""Shares of the candidates that are given out among all problems."""
_UNSOLVED = math.log(20)  # gain expected of the first accepted kernel, as the logarithm of a speedup
_PART = 0.5  # part of the logarithmic distance to the floor that a gain is expected to close

Counts = tuple[int, ...]
"""Number of candidates that each problem gets, in the order of the problems."""


@dataclass(frozen=True)
class Replay:
    """What a policy would have done."""

    policy: str
    """Its name."""
    candidates: int
    """Number of candidates that it would have requested."""
    tokens: int
    """Tokens of these."""
    candidates_saved: float
    """Fraction of the recorded candidates that it would have saved."""
    tokens_saved: float | None
    """Fraction of the recorded tokens that it would have saved; None if none were used."""
    speed_kept: float | None
    """Geometric mean of the time of the recorded run's kernel divided by that of the policy's, over problems that both
    solved; None without any."""
    unsolved: tuple[str, ...]
    """Problems that only the recorded runs solved."""


def replays(courses: Sequence[Course]) -> list[Replay]:
    """Each policy on ``courses``, the recorded runs first."""
    found = [_replayed("recorded", courses, tuple(len(course.attempts) for course in courses))]
    for within in (None, *WITHIN):
        for patience in (None, *PATIENCE):
            if within is None and patience is None:
                continue
            counts = tuple(stopping(course, within, patience) for course in courses)
            found.append(_replayed(_name(within, patience), courses, counts))
    total = sum(len(course.attempts) for course in courses)
    for share in SHARES:
        count = math.ceil(share * total)
        given = f"{share:.0%} of the candidates"
        found.append(_replayed(f"{given}, by expected gain", courses, allotted(courses, count, expected_gain)))
        found.append(_replayed(f"{given}, in turn", courses, allotted(courses, count, in_turn)))
    return found


def stopping(course: Course, within: float | None, patience: int | None) -> int:
    """Number of candidates until an accepted one is ``within`` this fraction of the floor, or ``patience`` in a row
    saved less than 1% of the time; all if neither happens. Neither ends a run before a kernel is accepted."""
    best, since = math.inf, 0
    for count, attempt in enumerate(course.attempts, 1):
        since += 1
        if attempt.time_us is not None and attempt.time_us < best:
            since = 0 if attempt.time_us <= best * (1 - TIE) else since
            best = attempt.time_us
            if within is not None and attempt.floor_us is not None and best <= (1 + within) * attempt.floor_us:
                return count
        if patience is not None and best < math.inf and since >= patience:
            return count
    return len(course.attempts)


def allotted(courses: Sequence[Course], total: int, priority: Callable[[Course, int], float]) -> Counts:
    """Numbers of candidates if ``total`` are given out one after another, each to the problem of greatest ``priority``
    for the candidates that it has had (the first such problem), while it has recorded ones."""
    counts = [0] * len(courses)
    for _ in range(total):
        open_ones = [at for at, course in enumerate(courses) if counts[at] < len(course.attempts)]
        if not open_ones:
            break
        counts[max(open_ones, key=lambda at: priority(courses[at], counts[at]))] += 1
    return tuple(counts)


def expected_gain(course: Course, count: int) -> float:
    """Expected logarithm of the speedup that the next candidate brings, from the first ``count`` only: the probability
    of a gain by Laplace's rule of succession, times half the logarithmic distance to the floor (of an unsolved problem:
    the logarithm of 20)."""
    best, floor, gains = math.inf, 0.0, 0
    for attempt in course.attempts[:count]:
        if attempt.time_us is not None and attempt.time_us < best:
            best, floor, gains = attempt.time_us, attempt.floor_us or 0.0, gains + 1
    chance = (gains + 1) / (count + 2)
    if best == math.inf:
        return chance * _UNSOLVED
    return chance * _PART * (max(math.log(best / floor), 0.0) if floor else _UNSOLVED)


def in_turn(course: Course, count: int) -> float:
    """Priority of the problem with the fewest candidates."""
    return -count


def _replayed(policy: str, courses: Sequence[Course], counts: Counts) -> Replay:
    attempts = [attempt for course, count in zip(courses, counts, strict=True) for attempt in course.attempts[:count]]
    recorded, all_tokens = sum(len(course.attempts) for course in courses), sum(course.tokens for course in courses)
    tokens = sum(attempt.tokens for attempt in attempts)
    kept, unsolved = list[float](), list[str]()
    for course, count in zip(courses, counts, strict=True):
        full_us, policy_us = course.best_us(), course.best_us(count)
        if full_us is not None and policy_us is not None:
            kept.append(full_us / policy_us)
        elif full_us is not None:
            unsolved.append(course.name)
    return Replay(
        policy=policy,
        candidates=len(attempts),
        tokens=tokens,
        candidates_saved=1 - len(attempts) / recorded if recorded else 0.0,
        tokens_saved=1 - tokens / all_tokens if all_tokens else None,
        speed_kept=geometric_mean(kept) if kept else None,
        unsolved=tuple(unsolved),
    )


def _name(within: float | None, patience: int | None) -> str:
    near = f"within {within:.0%} of the floor" if within is not None else ""
    idle = f"{patience} without a gain" if patience is not None else ""
    return " or ".join(filter(None, (near, idle)))


def replays_text(found: Sequence[Replay]) -> str:
    """The policies as a table."""
    rows = [
        (
            each.policy, str(each.candidates), _percent(each.candidates_saved), f"{each.tokens:,}",
            _percent(each.tokens_saved), _percent(each.speed_kept), ", ".join(each.unsolved) or "-",
        )
        for each in found
    ]  # fmt: skip
    head = ("policy", "candidates", "saved", "tokens", "saved", "speed kept", "no longer solved")
    return plain("\n".join(columns([head, *rows])))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"

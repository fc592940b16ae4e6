"""What became of the ideas of a run, which of them to try next, and how well a model's expectations come true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal

from cutegen_lab.core.candidate import Candidate, Proposal
from cutegen_lab.core.ideas import TIME, Change, Idea
from cutegen_lab.core.run import RunState
from cutegen_lab.core.trial import Trial

HELD = 0.5  # fraction of an expected change that must come for the expectation to have held
_ROUNDING = 1e-9  # of the division
_ENOUGH = 3  # expectations from which it is said how much of them came
_LARGE = 2.0  # an idea of large cost must gain this much more than one of small cost to be tried first

Status = Literal["open", "held", "refuted", "tried"]


@dataclass(frozen=True)
class IdeaResult:
    """An idea of a run, and what came of it so far."""

    id: str
    """Unique within its run: ``i1``, ``i2``, …"""
    idea: Idea
    """The idea."""
    by: str
    """Model or provider that had it, or "analyst"."""
    status: Status
    """"open": no kernel that tries it has passed; "held": it changed its metric by at least half of what was expected;
    "refuted": by less; "tried": a kernel passed, but no change was expected or could be found out."""
    tries: tuple[str, ...] = ()
    """Candidates that tried it."""
    came: Change | None = None
    """The greatest change that came of them, in the metric of the expectation (without one: in time)."""


@dataclass(frozen=True)
class Expectation:
    """A change that a model expected of a candidate, and the change that came."""

    expected: Change
    """What was expected."""
    came: Change
    """What came, of the same metric."""

    @property
    def held(self) -> bool:
        """Whether at least half of the expected change came, in its direction."""
        return self.came.fraction / self.expected.fraction >= HELD - _ROUNDING


def idea_results(state: RunState) -> tuple[IdeaResult, ...]:
    """All ideas of a run, oldest first."""
    return tuple(_result(state, name, given.idea, given.by) for name, given in state.ideas.items())


def open_ideas(state: RunState) -> tuple[IdeaResult, ...]:
    """The ideas that no passing kernel has tried, the most promising first: by expected gain in time; a large cost
    counts as half the gain, and so does each failed try."""

    def promise(result: IdeaResult) -> float:
        expects = result.idea.expects
        gain = -expects.fraction if expects is not None and expects.metric == TIME else 0.0
        return gain / (_LARGE if result.idea.cost == "large" else 1.0) * 0.5 ** len(result.tries)

    return tuple(sorted((each for each in idea_results(state) if each.status == "open"), key=promise, reverse=True))


def expectations(state: RunState) -> tuple[Expectation, ...]:
    """The expectations of a run's candidates for which it is known what came."""
    found = []
    for candidate in state.candidates.values():
        expected = purpose(state, candidate).expects
        came = _came(state, candidate, expected.metric) if expected is not None and expected.fraction else None
        if expected is not None and came is not None:
            found.append(Expectation(expected, came))
    return tuple(found)


def trust(found: Iterable[Expectation]) -> float:
    """The median fraction of an expected change that came, from 0 to 1; 1 if fewer than three are known."""
    shares = [each.came.fraction / each.expected.fraction for each in found]
    if len(shares) < _ENOUGH:
        return 1.0
    share: float = median(shares)
    return min(max(share, 0.0), 1.0)


def change_between(metric: str, before: Trial, after: Trial) -> Change | None:
    """How ``metric`` changed from one trial to another; None if either has no value of it, or the times were not found
    in the same way."""
    if metric == TIME and _way(before) != _way(after):
        return None
    first, second = _VALUES[metric](before), _VALUES[metric](after)
    return None if first is None or second is None or first <= 0 else Change(metric, second / first - 1)


def _way(trial: Trial) -> tuple[str, str] | None:
    return (trial.timing.kind, trial.timing.device) if trial.timing else None


def _counted(*names: str) -> Callable[[Trial], float | None]:
    def value(trial: Trial) -> float | None:
        found = [trial.profile.counters.get(name) for name in names] if trial.profile else [None]
        return None if None in found else sum(each or 0.0 for each in found)

    return value


_VALUES: Mapping[str, Callable[[Trial], float | None]] = {  # metric -> its value on the main workload
    TIME: lambda trial: trial.timing.time_us if trial.timing else None,
    "dram bytes": _counted("dram_load_bytes", "dram_store_bytes"),
    "l2 bytes": _counted("moved_bytes"),
    "instructions": _counted("warp_instructions"),
    "bank conflicts": _counted("shared_conflicts"),
    "registers": lambda trial: float(trial.resources.registers) if trial.resources else None,
    "shared memory": lambda trial: float(trial.resources.smem_bytes) if trial.resources else None,
}


def _result(state: RunState, name: str, idea: Idea, by: str) -> IdeaResult:
    tries = [each for each in state.candidates.values() if purpose(state, each).implements == name]
    passed = [each for each in tries if (trial := state.trials.get(each.id)) is not None and trial.verdict.passed]
    metric = idea.expects.metric if idea.expects else TIME
    changes = [came for each in passed if (came := _came(state, each, metric)) is not None]
    expected = idea.expects.fraction if idea.expects else 0.0
    came = (max if expected > 0 else min)(changes, key=lambda each: each.fraction) if changes else None
    status: Status = "tried" if passed else "open"
    if came is not None and idea.expects is not None and expected:
        status = "held" if Expectation(idea.expects, came).held else "refuted"
    return IdeaResult(name, idea, by, status, tuple(each.id for each in tries), came)


def _came(state: RunState, candidate: Candidate, metric: str) -> Change | None:
    """How a candidate changed ``metric`` from the kernel that it changes; None if it did not pass."""
    before, after = base_trial(state, candidate), state.trials.get(candidate.id)
    if before is None or after is None or not after.verdict.passed:
        return None
    return change_between(metric, before, after)


def base_trial(state: RunState, candidate: Candidate) -> Trial | None:
    """Trial of the nearest ancestor that passed: a fix is compared with the kernel that the failed candidate was to
    improve. None without one."""
    above = state.candidates.get(candidate.parent_id or "")
    while above is not None:
        trial = state.trials.get(above.id)
        if trial is not None and trial.verdict.passed:
            return trial
        above = state.candidates.get(above.parent_id or "")
    return None


def purpose(state: RunState, candidate: Candidate) -> Proposal:
    """The proposal whose idea and expectation a candidate serves: its own or, for a fix that names none, that of the
    failed candidate that it fixes."""
    proposal, above = candidate.proposal, state.candidates.get(candidate.parent_id or "")
    while above is not None and not (proposal.implements or proposal.expects):
        trial = state.trials.get(above.id)
        if trial is None or trial.verdict.passed:
            break
        proposal, above = above.proposal, state.candidates.get(above.parent_id or "")
    return proposal

"""What changes of kernels did in a store's runs: facts by class of work and GPU, with counter-examples.

A fact says what was changed and what came of it, never how: no text of a kernel is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from cutegen_lab.core.idea_results import change_between
from cutegen_lab.core.ideas import TIME
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.run import RunState

GAIN, LOSS = -0.02, 0.01  # changes of the time from which a change counts as a gain, and as a loss
_GAINS, _LOSSES = 4, 2  # how many of each are told


@dataclass(frozen=True)
class Fact:
    """One change of one kernel."""

    claim: str
    """What was changed: the candidate's title."""
    limiter: str
    """What limited the kernel before."""
    change: float | None
    """Change of the time on the main workload as a fraction of the time before; None if the new kernel did not pass."""
    verdict: str
    """Verdict of the new kernel."""
    kind: str
    """Whether the times were "measured" or "predicted"; "" without a change."""
    by: str
    """Model or provider that made the change."""
    candidate_id: str
    """The new kernel."""


@dataclass(frozen=True)
class KnownFact:
    """A fact and where it comes from."""

    fact: Fact
    """The fact."""
    work_class: str
    """Class of work of its problem."""
    gpu: str
    """GPU of the times."""
    problem_key: str
    """Its problem (:attr:`~cutegen_lab.core.problem.Problem.key`)."""
    run_id: str
    """Its run."""


def facts_of(state: RunState) -> tuple[Fact, ...]:
    """The facts of a run: one for each candidate that changed a kernel with a time."""
    found = []
    for candidate in state.candidates.values():
        before, after = (state.trials.get(each or "") for each in (candidate.parent_id, candidate.id))
        if before is None or after is None or before.timing is None or not before.verdict.passed:
            continue
        came = change_between(TIME, before, after) if after.verdict.passed else None
        if after.verdict.passed and came is None:
            continue
        proposal = candidate.proposal
        limiter = before.profile.limiter if before.profile else ""
        kind = before.timing.kind if came else ""
        found.append(
            Fact(one_line(proposal.title), limiter, came.fraction if came else None, after.verdict.value, kind,
                 proposal.model or candidate.provider, candidate.id)
        )  # fmt: skip
    return tuple(found)


@dataclass(frozen=True)
class Told:
    """Facts with the same claim, as one."""

    claim: str
    """What was changed."""
    change: float | None
    """Median change of the time; None if no kernel passed."""
    facts: tuple[KnownFact, ...]
    """The facts, at least one."""

    def __str__(self) -> str:
        first = self.facts[0].fact
        where = f"limited by {first.limiter}: " if first.limiter else ""
        times = f", median of {len(self.facts)}" if len(self.facts) > 1 else ""
        if self.change is None:
            return f"{where}“{self.claim}”: {first.verdict.replace('_', ' ')}"
        kinds = {each.fact.kind for each in self.facts if each.fact.kind}
        return f"{where}“{self.claim}”: {100 * self.change:+.3g}% time ({'/'.join(sorted(kinds))}{times})"


def grouped(facts: Iterable[KnownFact]) -> tuple[Told, ...]:
    """Facts by claim, the greatest gain first, those that did not pass last."""
    by_claim: dict[str, list[KnownFact]] = {}
    for each in facts:
        by_claim.setdefault(each.fact.claim.casefold(), []).append(each)
    told = []
    for group in by_claim.values():
        changes = [each.fact.change for each in group if each.fact.change is not None]
        told.append(Told(group[0].fact.claim, median(changes) if changes else None, tuple(group)))
    return tuple(sorted(told, key=lambda each: 1.0 if each.change is None else each.change))


def relevant(
    facts: Sequence[KnownFact], work_class: str, gpu: str, problem_key: str, limiter: str = ""
) -> tuple[Told, ...]:  # fmt: skip
    """What a model is told about a problem: at most four gains, and two losses or failures, of other problems of its
    class on ``gpu``; those that were limited as its kernel is (``limiter``) first."""
    alike = [
        each for each in facts if (each.work_class, each.gpu) == (work_class, gpu) and each.problem_key != problem_key
    ]

    def elsewhere(told: Told) -> bool:
        return told.facts[0].fact.limiter != limiter

    all_told = grouped(alike)
    gains = [each for each in all_told if each.change is not None and each.change <= GAIN]
    others = [each for each in reversed(all_told) if each.change is None or each.change >= LOSS]
    return (*sorted(gains, key=elsewhere)[:_GAINS], *sorted(others, key=elsewhere)[:_LOSSES])

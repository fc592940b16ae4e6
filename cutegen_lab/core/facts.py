"""What changes of kernels did in a store's runs: facts by class of work and GPU, with counter-examples.

A fact says what was changed and what came of it, never how: no text of a kernel is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from cutegen_lab.core.idea_results import base_trial, change_between, purpose
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
    """The facts of a run: one for each change of a model to a kernel that passed. A failure that a fix mended is none:
    the fix is compared with the kernel before."""
    found = []
    mended = {each.parent_id for each in state.candidates.values()}
    for candidate in state.candidates.values():
        before, after = base_trial(state, candidate), state.trials.get(candidate.id)
        if before is None or after is None or before.timing is None or not candidate.proposal.model:
            continue
        came = change_between(TIME, before, after) if after.verdict.passed else None
        if came is None and (after.verdict.passed or candidate.id in mended):
            continue
        limiter = before.profile.limiter if before.profile else ""
        kind = before.timing.kind if came else ""
        title = purpose(state, candidate).title
        found.append(
            Fact(quoted(title), limiter, came.fraction if came else None, after.verdict.value, kind,
                 candidate.proposal.model, candidate.id)
        )  # fmt: skip
    return tuple(found)


def quoted(title: str) -> str:
    """A title for quotation marks: on one line, without marks that would end the quotation."""
    return one_line(title).translate(dict.fromkeys(map(ord, '“”"`'), "'"))


@dataclass(frozen=True)
class FactGroup:
    """Facts with the same claim and limiter, as one."""

    claim: str
    """What was changed."""
    change: float | None
    """Median change of the time of the kernels that passed; None if none did."""
    facts: tuple[KnownFact, ...]
    """The facts, at least one."""

    def __str__(self) -> str:
        first = self.facts[0].fact
        where = f"limited by {first.limiter}: " if first.limiter else ""
        if self.change is None:
            return f"{where}“{self.claim}”: {first.verdict.replace('_', ' ')}"
        passed = [each.fact for each in self.facts if each.fact.change is not None]
        kinds = "/".join(sorted({each.kind for each in passed}))
        times = f", median of {len(passed)}" if len(passed) > 1 else ""
        failed = f", {len(self.facts) - len(passed)} failed" if len(passed) < len(self.facts) else ""
        return f"{where}“{self.claim}”: {100 * self.change:+.3g}% time ({kinds}{times}{failed})"


def grouped(facts: Iterable[KnownFact]) -> tuple[FactGroup, ...]:
    """Facts by claim and limiter, the greatest gain first, those that did not pass last."""
    by_claim: dict[tuple[str, str], list[KnownFact]] = {}
    for each in facts:
        by_claim.setdefault((each.fact.claim.casefold(), each.fact.limiter), []).append(each)
    groups = []
    for group in by_claim.values():
        changes = [each.fact.change for each in group if each.fact.change is not None]
        groups.append(FactGroup(group[0].fact.claim, median(changes) if changes else None, tuple(group)))
    return tuple(sorted(groups, key=lambda each: 1.0 if each.change is None else each.change))


def relevant(
    facts: Sequence[KnownFact], work_class: str, gpu: str, problem_key: str, limiter: str = ""
) -> tuple[FactGroup, ...]:  # fmt: skip
    """What a model is told about a problem: at most four gains, and two losses or failures, of other problems of its
    class on ``gpu``; those that were limited as its kernel is (``limiter``) first."""
    alike = [
        each for each in facts if (each.work_class, each.gpu) == (work_class, gpu) and each.problem_key != problem_key
    ]

    def elsewhere(group: FactGroup) -> bool:
        return group.facts[0].fact.limiter != limiter

    groups = grouped(alike)
    gains = [each for each in groups if each.change is not None and each.change <= GAIN]
    losses = [each for each in reversed(groups) if each.change is not None and each.change >= LOSS]
    failures = [each for each in groups if each.change is None]
    return (*sorted(gains, key=elsewhere)[:_GAINS], *sorted([*losses, *failures], key=elsewhere)[:_LOSSES])

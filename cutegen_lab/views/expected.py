"""Whether a refinement gained what its proposal promised, as a row of the evidence card."""

from __future__ import annotations

import re

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.idea_results import change_between
from cutegen_lab.core.trial import Timing, Trial
from cutegen_lab.views.model import EvidenceRow

_NUMBER = r"(\d+(?:\.\d+)?)"
_LESS = re.compile(rf"{_NUMBER} ?% (?:less|lower|shorter)(?: time)?|[-−–]{_NUMBER} ?% (?:of (?:the )?)?time")
_FASTER = re.compile(rf"{_NUMBER} ?% faster")
_TIMES = re.compile(rf"{_NUMBER} ?(?:×|x|times) (?:faster|as fast)")
_ENOUGH = 0.9  # fraction of the promised gain from which the promise counts as met


def expected_gain(text: str) -> float | None:
    """Share of the parent's time that ``text`` (a proposal's expected effect) says is saved, such as ``44.1% less time
    than c1``, ``-20% time``, ``25% faster`` or ``1.5× faster``; None unless it states exactly one."""
    less = [float(one or other) / 100 for one, other in _LESS.findall(text)]
    faster = [1 - 1 / (1 + float(share) / 100) for share in _FASTER.findall(text)]
    times = [1 - 1 / float(factor) for factor in _TIMES.findall(text) if float(factor) > 0]
    found = [*less, *faster, *times]
    return found[0] if len(found) == 1 and 0 < found[0] < 1 else None


def expected_rows(proposal: Proposal, trial: Trial, parent: Trial | None) -> list[EvidenceRow]:
    """The expected and the actual change of a candidate: a row if both are known, and times of one kind."""
    if proposal.expects is None:
        return _expected_time(proposal.predicted_effect, trial.timing, parent.timing if parent else None)
    expected, came = proposal.expects, change_between(proposal.expects.metric, parent, trial) if parent else None
    if came is None or not expected.fraction:
        return []
    met = came.fraction / expected.fraction >= _ENOUGH
    kind = trial.timing.kind if trial.timing else ""
    return [
        EvidenceRow(
            key="expected", label="Expected", value="met" if met else "not met", basis=kind,
            detail=f"{came}; {expected} was expected", tone="good" if met else "warn",
        )
    ]  # fmt: skip


def _expected_time(text: str, timing: Timing | None, before: Timing | None) -> list[EvidenceRow]:
    wanted = expected_gain(text)
    if (
        wanted is None
        or timing is None
        or before is None
        or (timing.kind, timing.device) != (before.kind, before.device)
    ):
        return []
    gain = 1 - timing.time_us / before.time_us
    met = gain >= _ENOUGH * wanted
    came = f"{gain:.1%} less time" if gain >= 0 else f"{-gain:.1%} more time"
    return [
        EvidenceRow(
            key="expected", label="Expected", value="met" if met else "not met", basis=timing.kind,
            detail=f"{came} than its parent; {wanted:.1%} less was expected", tone="good" if met else "warn",
        )
    ]  # fmt: skip

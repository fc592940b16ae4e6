"""The answers an analyst may give: one table, from which the command line, the magics and the widget take names,
arguments and help.

A new verb is a name in :data:`Verb`, an entry here, its effect in :mod:`cutegen_lab.loop.answers`, and its method on
the handle of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cutegen_lab.core.run import Answer, AnswerKind

Verb = Literal[AnswerKind, "resume"]
Takes = Literal["nothing", "reason", "source", "candidate"]


@dataclass(frozen=True)
class VerbSpec:
    """One verb of the table."""

    key: str
    """Letter that chooses it at a terminal; empty if terminals do not offer it."""
    choice: str
    """Name in a terminal's menu."""
    past: str
    """Name of such an answer in a history."""
    help: str
    """One line of help."""
    takes: Takes = "nothing"
    """Its argument: nothing, a reason, a kernel's text, or a candidate's id."""


VERBS: Mapping[Verb, VerbSpec] = {
    "approve": VerbSpec("a", "approve", "approved", "accept the candidate under review (its evidence must be in)"),
    "approve_unproven": VerbSpec(
        "u", "approve without proof", "approved without proof", "accept it without proof; recorded as such"
    ),
    "reject": VerbSpec(
        "r", "reject with a reason", "rejected", "refuse it; the reason goes to the provider", "reason"
    ),
    "edit": VerbSpec("e", "edit", "edited", "this text is the next candidate, exactly as it stands", "source"),
    "retry": VerbSpec("t", "try again", "retried", "ask again from the same parent"),
    "branch": VerbSpec(
        "b", "branch from an older one", "branched", "grow the next candidate from an earlier one (c1, c2, ...)",
        "candidate",
    ),
    "stop": VerbSpec("s", "stop", "stopped", "end the run where it is"),
    "resume": VerbSpec("", "resume", "resumed", "take it up in this process"),
}  # fmt: skip


def in_words(answer: Answer | None) -> str:
    """ "approved", "approved by auto", "rejected: too clever", "branched from c1", …; empty where there is none yet."""
    if answer is None:
        return ""
    detail = f": {answer.text}" if answer.kind == "reject" and answer.text else ""
    origin = f" from {answer.target_id}" if answer.kind == "branch" and answer.target_id else ""
    by = " by auto" if answer.by == "auto" else ""
    return f"{VERBS[answer.kind].past}{origin}{by}{detail}"

"""The answers an analyst may give: one table, from which the handle of a run, the magics, the widget, its TypeScript
and the command line take names, arguments and help.

A new verb is its name in :data:`AnswerKind`, an entry in :data:`VERBS`, and its effect in
:mod:`cutegen_lab.loop.answers`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from cutegen_lab.core.scopes import Scope, scope_of

AnswerKind = Literal["approve", "approve_unproven", "reject", "edit", "retry", "branch", "stop"]
NoteVerb = Literal["comment", "pin", "lift"]
NOTE_VERBS: tuple[NoteVerb, ...] = get_args(NoteVerb)
"""Verbs that answer nothing: comments and pins (:mod:`cutegen_lab.core.notes`)."""
Verb = Literal[AnswerKind, "resume", NoteVerb]
Takes = Literal["nothing", "scope", "reason", "source", "candidate", "place", "note"]


@dataclass(frozen=True)
class VerbSpec:
    """One verb of the table."""

    key: str
    """Letter that chooses it at a terminal; empty if terminals do not offer it."""
    choice: str
    """Name in a terminal's menu."""
    button: str
    """Label of the widget's button; ``{id}`` is the candidate it is about."""
    past: str
    """Name of such an answer in a history."""
    help: str
    """One line of help."""
    takes: Takes = "nothing"
    """Its argument: nothing, a scope (:mod:`cutegen_lab.core.scopes`; before it the id of another candidate than the
    one under review; both optional), a reason, a kernel's text, a candidate's id (and feedback), a place in a
    candidate's text (and words), or the id of a comment or pin."""


VERBS: Mapping[Verb, VerbSpec] = {
    "approve": VerbSpec(
        "a", "approve", "Approve {id}", "approved",
        "accept the candidate under review or another that passed (c1), and those of a scope (3 steps, within 5%, "
        "until slower)",
        "scope",
    ),
    "approve_unproven": VerbSpec(
        "u", "approve without proof", "Approve without proof…", "approved without proof",
        "accept it without proof; recorded as such",
    ),
    "reject": VerbSpec(
        "r", "reject with a reason", "Reject with reason…", "rejected", "refuse it; the reason goes to the provider",
        "reason",
    ),
    "edit": VerbSpec(
        "e", "edit", "Edit…", "edited", "this text is the next candidate, exactly as it stands", "source"
    ),
    "retry": VerbSpec("t", "try again", "Retry", "retried", "ask again from the same parent"),
    "branch": VerbSpec(
        "b", "branch from an older one", "Branch from {id}", "branched",
        "grow the next candidate from an earlier one (c1, c2, ...)", "candidate",
    ),
    "stop": VerbSpec("s", "stop", "Stop", "stopped", "end the run where it is"),
    "resume": VerbSpec("", "resume", "Resume", "resumed", "take it up in this process"),
    "comment": VerbSpec(
        "c", "comment", "Comment…", "commented",
        "say something about lines (c2:10-14) or a name (c2:epilogue); it goes to the provider", "place",
    ),
    "pin": VerbSpec(
        "p", "pin", "Pin…", "pinned",
        "later candidates must leave these lines, this function or this parameter as it is (c2:stages)", "place",
    ),
    "lift": VerbSpec("l", "lift", "Remove", "lifted", "take a comment away, or lift a pin (n1, n2, ...)", "note"),
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """The analyst's answer to a candidate."""

    kind: AnswerKind
    """What the analyst chose."""
    candidate_id: str | None = None
    """Candidate it is about; None for the one under review."""
    text: str = ""
    """Edited source (edit) or reason (reject)."""
    target_id: str | None = None
    """Candidate to branch from (branch)."""
    by: Literal["analyst", "auto", "scope"] = "analyst"
    """Who answered: the analyst, "auto" under :attr:`RunSettings.auto`, or the scope of an earlier approval."""
    scope: Scope | None = None
    """Scope of an approval, or the earlier scope that gave this answer; None for this step alone."""


_CANDIDATE = re.compile(r"\s*(c\d+)(?:\s+|$)")  # at the start of an approval's argument


def answer_of(kind: AnswerKind, argument: str = "", note: str = "") -> Answer:
    """The answer ``kind`` with the argument that it takes; ``note`` is the feedback of a branch. Raises InputError for
    a scope that cannot be read."""
    if VERBS[kind].takes == "scope":
        named = _CANDIDATE.match(argument)
        return Answer(kind, named[1] if named else None, scope=scope_of(argument[named.end() :] if named else argument))
    if VERBS[kind].takes == "candidate":
        return Answer(kind, target_id=argument, text=note)
    return Answer(kind, text=argument)


def in_words(answer: Answer | None) -> str:
    """ "approved", "approved by auto", "rejected: too clever", "branched from c1", …; empty where there is none yet."""
    if answer is None:
        return ""
    detail = f": {answer.text}" if answer.kind == "reject" and answer.text else ""
    origin = f" from {answer.target_id}" if answer.kind == "branch" and answer.target_id else ""
    by = {"auto": " by auto", "scope": f" by the scope “{answer.scope}”"}.get(answer.by, "")
    if answer.by == "analyst" and answer.scope is not None:
        by = f", and {answer.scope}"
    return f"{VERBS[answer.kind].past}{origin}{by}{detail}"

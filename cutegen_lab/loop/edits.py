"""The candidate that an edit by the analyst makes, and its config."""

from __future__ import annotations

from cutegen_lab.core.candidate import Candidate, Config, Proposal
from cutegen_lab.core.syntax import launch_defaults

ANALYST = "analyst"  # the provider of edited text


def edited(parent: Candidate, text: str, candidate_id: str) -> Candidate:
    """The candidate whose text is ``text``, unchanged."""
    proposal = Proposal(
        source=text,
        title=f"an edit of {parent.id}",
        reason="edited by the analyst",
        config=config_after_edit(parent, text),
    )
    return Candidate(candidate_id, parent.id, ANALYST, proposal)


def config_after_edit(parent: Candidate, text: str) -> Config:
    """The parent's config without the parameters whose default the edit changed or removed.

    A value in the config overrides the default in the source. A default that the analyst changed must
    count, or the edit would silently have no effect.
    """
    before, after = launch_defaults(parent.source), launch_defaults(text)
    if after is None:  # the text does not parse: the gate will report the line
        return dict(parent.config)
    return {
        name: value
        for name, value in parent.config.items()
        if name in after and (before is None or before.get(name) == after[name])
    }

"""Effects: the possible next steps of a run as frozen data. The driver performs them."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.core.protocols import GenerateRequest
from cutegen_lab.core.run import Answer


@dataclass(frozen=True)
class Generate:
    """Ask the provider for one candidate."""

    request: GenerateRequest
    """What to ask for."""


@dataclass(frozen=True)
class Compile:
    """Compile a candidate."""

    candidate_id: str
    """The candidate."""


@dataclass(frozen=True)
class Check:
    """Check a candidate's outputs."""

    candidate_id: str
    """The candidate."""
    artifact_sha256: str
    """Hash of its artifact in the store."""


@dataclass(frozen=True)
class Time:
    """Time a candidate that passed."""

    candidate_id: str
    """The candidate."""
    artifact_sha256: str
    """Hash of its artifact in the store."""


@dataclass(frozen=True)
class Profile:
    """Profile a candidate that was timed."""

    candidate_id: str
    """The candidate."""
    artifact_sha256: str
    """Hash of its artifact in the store."""


@dataclass(frozen=True)
class AskReview:
    """Wait for an answer."""

    candidate_id: str | None
    """Candidate under review; None if there is none."""
    answer: Answer | None = None
    """Answer of the auto policy; None leaves it to the analyst."""


@dataclass(frozen=True)
class Finish:
    """The run is done."""

    outcome: str
    """How it ended (:attr:`RunState.outcome`)."""
    note: str
    """Why, in one line; empty if obvious."""


Effect = Generate | Compile | Check | Time | Profile | AskReview | Finish

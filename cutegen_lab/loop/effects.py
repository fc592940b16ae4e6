"""What the machine asks its driver to do next, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_lab.core.protocols import GenerateRequest
from cutegen_lab.core.run import Answer


@dataclass(frozen=True)
class Generate:
    """Ask the provider for one candidate."""

    request: GenerateRequest


@dataclass(frozen=True)
class Compile:
    candidate_id: str


@dataclass(frozen=True)
class Check:
    candidate_id: str
    artifact_sha256: str


@dataclass(frozen=True)
class Time:
    candidate_id: str
    artifact_sha256: str


@dataclass(frozen=True)
class Profile:
    candidate_id: str
    artifact_sha256: str


@dataclass(frozen=True)
class AskReview:
    """The run rests. ``answer`` is what the auto policy says; None leaves the word to the analyst."""

    candidate_id: str | None
    answer: Answer | None = None


@dataclass(frozen=True)
class Finish:
    outcome: str
    note: str


Effect = Generate | Compile | Check | Time | Profile | AskReview | Finish

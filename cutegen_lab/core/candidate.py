"""One source text, immutable, with a parent and a stated reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cutegen_lab.core.hashing import canonical_json, sha256
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.verdict import Diagnostic

Scalar = int | float | bool | str
Config = Mapping[str, Scalar]


def nearest_legal(value: Scalar, domain: Sequence[Scalar]) -> str:
    """A hint at what of ``domain`` is meant: the nearest number, the larger of two as near, or a word much alike."""
    if isinstance(value, int | float) and (numbers := [n for n in domain if isinstance(n, int | float)]) == [*domain]:
        return f"The nearest is {min(numbers, key=lambda n: (abs(n - value), -n))}."
    return did_you_mean(str(value), map(str, domain))


@dataclass(frozen=True)
class PromptRef:
    """A prompt that shaped an answer: its id, version, and the SHA-256 of the text that was sent."""

    id: str
    version: str
    sha256: str


@dataclass(frozen=True)
class TokenUsage:
    prompt: int = 0
    completion: int = 0

    @property
    def total(self) -> int:
        return self.prompt + self.completion


@dataclass(frozen=True)
class Proposal:
    """What a provider answers with: a candidate's text before it has an id and a parent.

    ``config`` holds tunables that differ from the defaults in ``source``. ``title`` is one line ("threads 256 → 512");
    ``reason`` says why; ``predicted_effect`` is falsifiable ("−12% time: twice the bytes in flight"). Where the answer
    was a spec, ``spec`` is its text, and ``refused`` why it could not be compiled: then ``source`` is that text too.
    """

    source: str
    title: str
    reason: str = ""
    predicted_effect: str = ""
    config: Config = field(default_factory=dict)
    prompts: tuple[PromptRef, ...] = ()
    usage: TokenUsage = TokenUsage()
    model: str = ""
    spec: str = ""
    refused: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A proposal that has entered a run's tree. ``id`` is unique within its run: ``c1``, ``c2``, …"""

    id: str
    parent_id: str | None
    provider: str
    proposal: Proposal

    @property
    def source(self) -> str:
        return self.proposal.source

    @property
    def config(self) -> Config:
        return self.proposal.config

    @property
    def source_sha256(self) -> str:
        return sha256(self.proposal.source)

    @property
    def key(self) -> str:
        """Equal for two candidates that compile to the same thing."""
        return sha256(canonical_json([self.proposal.source, dict(self.proposal.config)]))

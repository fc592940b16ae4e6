"""A candidate: one immutable source text with a parent and a stated reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field

from cutegen_lab.core.hashing import canonical_json, sha256
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.ideas import Change, Idea
from cutegen_lab.core.verdict import Diagnostic

Scalar = int | float | bool | str
Config = Mapping[str, Scalar]


def nearest_legal(value: Scalar, domain: Sequence[Scalar]) -> str:
    """Sentence with the value of ``domain`` closest to ``value``: the nearest number (the larger of two equally near)
    or the most similar word; empty if no word is similar."""
    if isinstance(value, int | float) and (numbers := [n for n in domain if isinstance(n, int | float)]) == [*domain]:
        return f"The nearest is {min(numbers, key=lambda n: (abs(n - value), -n))}."
    return did_you_mean(str(value), map(str, domain))


@dataclass(frozen=True)
class PromptRef:
    """A prompt that led to an answer."""

    id: str
    """Id of the prompt's file."""
    version: str
    """Version in its front matter."""
    sha256: str
    """SHA-256 of the text that was sent."""


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one answer, or of several."""

    prompt: int = 0
    """Tokens sent."""
    completion: int = 0
    """Tokens received."""
    cached: int = 0
    """Tokens of ``prompt`` that the server read from its cache."""
    reasoning: int = 0
    """Tokens of ``completion`` that are reasoning, which is no part of the answer."""
    estimated: int = 0
    """Tokens of ``prompt`` and ``completion`` that cutegen estimated because the server reported none."""

    @property
    def total(self) -> int:
        """Tokens sent and received."""
        return self.prompt + self.completion

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Proposal:
    """A provider's answer: a candidate's text, before it has an id and a parent."""

    source: str
    """Python text of the kernel module; the spec's text if the spec was ``refused``."""
    title: str
    """One line ("threads 256 → 512")."""
    reason: str = ""
    """Why the change was made."""
    predicted_effect: str = ""
    """A falsifiable prediction ("−12% time: twice the bytes in flight")."""
    config: Config = field(default_factory=dict)
    """Tunables that differ from the defaults in ``source``."""
    prompts: tuple[PromptRef, ...] = ()
    """Prompts that were sent."""
    usage: TokenUsage = TokenUsage()
    """Tokens of the answer."""
    model: str = ""
    """Model that answered; empty without one."""
    provider: str = ""
    """Who proposed it, if not the provider that was asked: "templates" or "search" within a strategy."""
    spec: str = ""
    """Text of the spec, if the answer was one."""
    refused: tuple[Diagnostic, ...] = ()
    """Why the spec could not be compiled; empty if it could."""
    expects: Change | None = None
    """The change from its parent that the model expects; None if it said none."""
    implements: str = ""
    """Id of the idea that it tries; empty if that is its own."""
    ideas: tuple[Idea, ...] = ()
    """Further ideas that came with the answer; a candidate in a run has none, since they are the run's."""


@dataclass(frozen=True)
class Candidate:
    """A proposal that has entered a run's tree."""

    id: str
    """Unique within its run: ``c1``, ``c2``, …"""
    parent_id: str | None
    """Candidate it was derived from; None for a root."""
    provider: str
    """Name of the provider that proposed it."""
    proposal: Proposal
    """Its text and how it came about."""

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
        """Equal for two candidates that compile to the same code."""
        return sha256(canonical_json([self.proposal.source, dict(self.proposal.config)]))

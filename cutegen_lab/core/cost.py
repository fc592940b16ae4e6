"""What a run's answers cost: tokens, and dollars where a price is given. Prices change; none are built in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cutegen_lab.core.candidate import Candidate, TokenUsage
from cutegen_lab.core.errors import InputError

_DOLLARS = r"\$?(\d{1,6}(?:\.\d{1,6})?)"
_PRICE = re.compile(rf"{_DOLLARS}/{_DOLLARS}(?:/{_DOLLARS})?")


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens."""

    prompt_usd: float
    """For tokens sent."""
    completion_usd: float
    """For tokens received."""
    cached_usd: float | None = None
    """For tokens sent that the server read from its cache; None if they cost as much as other tokens sent."""

    def usd(self, usage: TokenUsage) -> float:
        """Dollars for ``usage``."""
        cached_usd = self.prompt_usd if self.cached_usd is None else self.cached_usd
        sent = (usage.prompt - usage.cached) * self.prompt_usd + usage.cached * cached_usd
        return (sent + usage.completion * self.completion_usd) / 1e6


class _Run(Protocol):
    @property
    def candidates(self) -> Mapping[str, Candidate]: ...

    @property
    def wasted(self) -> TokenUsage: ...


def tokens(run: _Run) -> TokenUsage:
    """Tokens of all answers so far, including those that became no candidate."""
    return sum((each.proposal.usage for each in run.candidates.values()), run.wasted)


def in_words(usage: TokenUsage) -> str:
    """``1,000 prompt (200 cached) + 300 completion (50 reasoning), 1,300 of them estimated``; parts that are 0 are left
    out."""
    cached = f" ({usage.cached:,} cached)" if usage.cached else ""
    reasoning = f" ({usage.reasoning:,} reasoning)" if usage.reasoning else ""
    estimated = f", {usage.estimated:,} of them estimated" if usage.estimated else ""
    return f"{usage.prompt:,} prompt{cached} + {usage.completion:,} completion{reasoning}{estimated}"


def price_of(text: str) -> Price | None:
    """``1.25/10`` or ``1.25/10/0.125``: dollars for a million tokens sent, received, and sent from the server's cache;
    None for an empty text. Raises InputError."""
    if not text.strip():
        return None
    found = _PRICE.fullmatch(text.strip())
    if found is None:
        raise InputError(
            f"cannot read the price {text!r}",
            "Write dollars for a million tokens sent and received as 1.25/10, or name a file of prices.",
        )
    return Price(float(found[1]), float(found[2]), float(found[3]) if found[3] else None)


def dollars(usd: float) -> str:
    """``$0.0042``, ``$0.13``, ``$12.40``."""
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:.2f}"

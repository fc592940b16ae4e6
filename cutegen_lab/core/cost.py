"""What a run's answers cost: tokens, and dollars where a price is given. Prices change; none are built in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cutegen_lab.core.candidate import Candidate, TokenUsage
from cutegen_lab.core.errors import InputError

_PRICE = re.compile(r"\$?(\d{1,6}(?:\.\d{1,6})?)/\$?(\d{1,6}(?:\.\d{1,6})?)")


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens."""

    prompt_usd: float
    """For tokens sent."""
    completion_usd: float
    """For tokens received."""

    def usd(self, usage: TokenUsage) -> float:
        """Dollars for ``usage``."""
        return (usage.prompt * self.prompt_usd + usage.completion * self.completion_usd) / 1e6


class _Run(Protocol):
    @property
    def candidates(self) -> Mapping[str, Candidate]: ...

    @property
    def wasted(self) -> TokenUsage: ...


def tokens(run: _Run) -> TokenUsage:
    """Tokens of all answers so far, including those that became no candidate."""
    return sum((each.proposal.usage for each in run.candidates.values()), run.wasted)


def price_of(text: str) -> Price | None:
    """``1.25/10``: dollars for a million tokens sent and received; None for an empty text. Raises InputError."""
    if not text.strip():
        return None
    found = _PRICE.fullmatch(text.strip())
    if found is None:
        raise InputError(
            f"cannot read the price {text!r}", "Write dollars for a million tokens sent and received as 1.25/10."
        )
    return Price(float(found[1]), float(found[2]))


def dollars(usd: float) -> str:
    """``$0.0042``, ``$0.13``, ``$12.40``."""
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:.2f}"

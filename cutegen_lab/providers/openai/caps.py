"""Caps of a run in tokens and dollars, as the maximum number of tokens of the next answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.cost import Price, dollars
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.hints import Advice, Hint

MIN_ANSWER_TOKENS = 16  # the Responses API refuses a smaller ``max_output_tokens``
_USD_ROUNDING = 1e-9  # dollars


@dataclass(frozen=True)
class Caps:
    """What all answers of a run may cost."""

    max_tokens: int | None = None
    """Maximum number of tokens sent and received; None for no limit."""
    max_usd: float | None = None
    """Maximum number of dollars at ``price``; None for no limit."""
    price: Price | None = None
    """Price of the tokens; None if it is not known."""

    def answer_tokens(self, spent: TokenUsage, prompt_tokens: int) -> int | None:
        """Maximum number of tokens of an answer to a prompt of ``prompt_tokens``, after ``spent``; None without a cap.
        Raises ProviderError if a cap leaves fewer than :data:`MIN_ANSWER_TOKENS`."""
        limits = [self._by_tokens(spent, prompt_tokens), self._by_dollars(spent, prompt_tokens)]
        return min((limit for limit in limits if limit is not None), default=None)

    def _by_tokens(self, spent: TokenUsage, prompt_tokens: int) -> int | None:
        if self.max_tokens is None:
            return None
        left = self.max_tokens - spent.total
        if left - prompt_tokens < MIN_ANSWER_TOKENS:
            told = f"the token cap is reached: {max(left, 0):,} tokens are left, and the next prompt may have"
            raise ProviderError(f"{told} {prompt_tokens:,}", Hint(Advice.MORE_TOKENS))
        return left - prompt_tokens

    def _by_dollars(self, spent: TokenUsage, prompt_tokens: int) -> int | None:
        if self.max_usd is None or self.price is None:
            return None
        needed = self.price.usd(TokenUsage(prompt_tokens, MIN_ANSWER_TOKENS))
        left = self.max_usd - self.price.usd(spent)
        if needed > left + _USD_ROUNDING:
            told = f"the cap in dollars is reached: {dollars(max(left, 0.0))} is left, and the next request may cost"
            raise ProviderError(f"{told} {dollars(needed)}", "Raise the cap, or accept a kernel found so far.")
        for_answer = left - self.price.usd(TokenUsage(prompt_tokens)) + _USD_ROUNDING
        return math.floor(for_answer * 1e6 / self.price.completion_usd) if self.price.completion_usd else None

"""What the runs of a suite may use together."""

from __future__ import annotations

import threading

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.cost import Price, dollars, tokens
from cutegen_lab.core.run import RunState, need_price

USED_UP = "budget: the suite's"
"""Beginning of the note of a run that stopped because the suite's budget is used up."""


class Purse:
    """The budget of a suite: tokens and dollars of the answers to all its runs. Thread-safe.

    No candidate is requested once it is used up; answers that are on their way then still count, so that the sum may
    exceed it by one answer for each run at work.
    """

    def __init__(
        self, max_tokens: int | None = None, max_usd: float | None = None, price: Price | None = None
    ) -> None:  # fmt: skip
        """None: no limit. Raises InputError for dollars without a ``price``."""
        need_price(max_usd, price)
        self._max_tokens, self._max_usd, self._price = max_tokens, max_usd, price
        self._lock = threading.Lock()
        self._used: dict[str, TokenUsage] = {}  # by run

    def record(self, state: RunState) -> None:
        """Notes what a run has used so far."""
        with self._lock:
            self._used[state.run_id] = tokens(state)

    def spent(self) -> str:
        """Why no further candidate may be requested; "" while one may."""
        with self._lock:
            used = sum(self._used.values(), TokenUsage())
        if self._max_tokens is not None and used.total >= self._max_tokens:
            return f"{USED_UP} {self._max_tokens:,} tokens are used ({used.total:,})"
        if self._max_usd is not None and self._price is not None and self._price.usd(used) >= self._max_usd:
            return f"{USED_UP} {dollars(self._max_usd)} are used ({dollars(self._price.usd(used))})"
        return ""

"""Tells a model what worked in other runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.protocols import Cancel, GenerateRequest, Provider, Say

Recall = Callable[[GenerateRequest], tuple[str, ...]]
"""What changes did in other runs on problems like the request's, one sentence each."""


class RecallingProvider:
    """A :class:`~cutegen_lab.core.protocols.Provider`: asks ``inner`` with the facts that ``recall`` finds; a request
    for a fix has none. Raises what ``inner`` raises."""

    def __init__(self, inner: Provider, recall: Recall) -> None:
        self._inner, self._recall = inner, recall
        self.name = inner.name

    @property
    def streamed(self) -> int:
        """Tokens received of the current answer of ``inner``."""
        return int(getattr(self._inner, "streamed", 0))

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        wanted = request.guidance.memory and request.kind != "fix"
        return self._inner.propose(replace(request, facts=self._recall(request)) if wanted else request, say, cancel)

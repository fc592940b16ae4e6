"""A run's events with the state they lead to, so that the events need not be folded again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_lab.core.run import RunState, StoredEvent
from cutegen_lab.loop.machine import fold


@dataclass(frozen=True)
class History:
    """Events of one run, and their fold."""

    events: Sequence[StoredEvent]
    """The events, in order."""
    state: RunState
    """State after the last of them."""

    @classmethod
    def of(cls, events: Sequence[StoredEvent]) -> History:
        """Folds ``events``. Raises :class:`InputError` for an empty or impossible sequence."""
        return cls(events, fold(e.event for e in events))

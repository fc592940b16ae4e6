"""Notices that a run sends to its subscribers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from cutegen_lab.core.run import RunState, StoredEvent

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Notice:
    """A new event, or one line of progress."""

    state: RunState
    """State of the run after the event."""
    event: StoredEvent | None
    """The event; None for a line of progress."""
    line: str = ""
    """The line; empty for an event."""


Subscriber = Callable[[Notice], None]


class Subscribers:
    """Callbacks for the notices of one run. Thread-safe."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._lock = threading.Lock()
        self._callbacks: list[Subscriber] = []

    def add(self, callback: Subscriber) -> Callable[[], None]:
        """Calls ``callback(notice)`` for each notice from now on; the returned function removes the callback."""
        with self._lock:
            self._callbacks.append(callback)

        def remove() -> None:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

        return remove

    def tell(self, notice: Notice) -> None:
        """Calls every callback. An exception of one is logged, and affects neither the others nor the run."""
        with self._lock:
            callbacks = list(self._callbacks)
        for callback in callbacks:
            try:
                callback(notice)
            except Exception:
                _log.exception("a subscriber of %s failed", self._run_id)

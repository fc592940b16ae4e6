"""What a run tells those who watch it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from cutegen_lab.core.run import RunState, StoredEvent

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Notice:
    """A new event with the state after it, or one line of progress (``event`` is None)."""

    state: RunState
    event: StoredEvent | None
    line: str = ""


Subscriber = Callable[[Notice], None]


class Subscribers:
    """Callbacks for the notices of one run. Safe to use from any thread."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._lock = threading.Lock()
        self._callbacks: list[Subscriber] = []

    def add(self, callback: Subscriber) -> Callable[[], None]:
        """``callback(notice)`` from now on; the function returned removes it."""
        with self._lock:
            self._callbacks.append(callback)

        def remove() -> None:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

        return remove

    def tell(self, notice: Notice) -> None:
        """Calls every callback. One that raises is logged, and stops neither the others nor the run."""
        with self._lock:
            callbacks = list(self._callbacks)
        for callback in callbacks:
            try:
                callback(notice)
            except Exception:
                _log.exception("a subscriber of %s failed", self._run_id)

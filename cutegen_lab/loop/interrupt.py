"""Calls that can be abandoned: Python cannot interrupt a thread, so one that does not end keeps running, abandoned."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from cutegen_lab.core.errors import Cancelled

T = TypeVar("T")
GRACE_SECONDS = 0.7
_POLL_SECONDS = 0.02


def call(work: Callable[[], T], cancel: threading.Event, name: str, grace: float = GRACE_SECONDS) -> T:
    """The result of ``work()``, called on a new thread. Raises what ``work`` raises, and :class:`Cancelled` once
    ``cancel`` is set.

    After ``cancel`` the work has ``grace`` seconds to end by itself (and to kill its child processes); then it is
    abandoned and its result dropped.
    """
    done = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name=name, daemon=True).start()
    try:
        while not done.wait(_POLL_SECONDS):
            if cancel.is_set():
                done.wait(grace)
                break
    except KeyboardInterrupt:
        cancel.set()
        done.wait(grace)
        raise
    if cancel.is_set():
        raise Cancelled()
    if errors:
        raise errors[0]
    return results[0]

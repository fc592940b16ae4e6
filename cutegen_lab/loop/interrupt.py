"""Calls that can be abandoned: Python cannot interrupt a thread, so one that does not end keeps running, abandoned."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from cutegen_lab.core.errors import Cancelled

T = TypeVar("T")
GRACE_SECONDS = 0.7
_POLL_SECONDS = 0.02
_abandoned: list[threading.Thread] = []


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

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        while not done.wait(_POLL_SECONDS):
            if cancel.is_set():
                if not done.wait(grace):
                    abandon(thread)
                break
    except KeyboardInterrupt:
        cancel.set()
        if not done.wait(grace):
            abandon(thread)
        raise
    if cancel.is_set():
        raise Cancelled()
    if errors:
        raise errors[0]
    return results[0]


def abandon(thread: threading.Thread) -> None:
    """Leaves a daemon thread to itself; :func:`await_abandoned` waits for it."""
    _abandoned[:] = [each for each in _abandoned if each.is_alive()] + [thread]


def await_abandoned(seconds: float) -> None:
    """Waits until the abandoned threads have ended, at most ``seconds``. Call it before Python ends: a thread that is
    in PyTorch then aborts the process, because CPython ends it in a way that C++ does not expect."""
    deadline = time.monotonic() + seconds
    for thread in list(_abandoned):
        thread.join(max(deadline - time.monotonic(), 0.0))

"""Calls that are abandoned, and waiting for them before Python ends."""

from __future__ import annotations

import threading
import time

import pytest

from cutegen_lab.core.errors import Cancelled
from cutegen_lab.loop.interrupt import await_abandoned, call


def test_abandoned_work_is_waited_for_but_not_forever() -> None:
    go_on, done = threading.Event(), threading.Event()

    def deaf() -> None:
        go_on.wait(30)
        done.set()

    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        call(deaf, cancel, "deaf", grace=0.01)
    before = time.monotonic()
    await_abandoned(0.1)
    assert not done.is_set() and 0.1 <= time.monotonic() - before < 5
    threading.Timer(0.1, go_on.set).start()
    await_abandoned(30)
    assert done.is_set()


def test_work_that_ends_in_time_is_not_abandoned() -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        call(lambda: None, cancel, "quick")
    await_abandoned(0.0)
    assert not [thread for thread in threading.enumerate() if thread.name == "quick" and thread.is_alive()]

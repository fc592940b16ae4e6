"""Limits BLAS to one thread while the emulator runs.

The products of tensor cores are batches of small matrices. OpenBLAS splits each of them among all cores and waits for
the last one, which takes several times as long as one thread does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

_lock = threading.Lock()
_running = 0
_limit: Any = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Limits BLAS to one thread. May be nested and concurrent; the last exit restores BLAS's threads."""
    global _running, _limit
    with _lock:
        _running += 1
        if _running == 1:
            _limit = _limited()
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0 and _limit is not None:
                _limit.restore_original_limits()


def _limited() -> Any:
    controller = _controller()
    return controller and controller.limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    """Finds the process's BLAS libraries once, since that takes as long as a small kernel's run.

    None if threadpoolctl is missing, as on a GPU machine with only PyTorch and a driver: slower, but correct.
    """
    with suppress(ImportError):
        from threadpoolctl import ThreadpoolController

        return ThreadpoolController()
    return None

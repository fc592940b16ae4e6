"""One thread for BLAS while the emulator runs.

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
    """Several runs at once may ask for this; the last that ends gives BLAS its threads back."""
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
    """Looks for the process's BLAS libraries, NumPy's among them, once: it takes as long as a small kernel's run does.

    None where threadpoolctl is missing: a GPU machine may have PyTorch and a driver alone, and is slower then.
    """
    with suppress(ImportError):
        from threadpoolctl import ThreadpoolController

        return ThreadpoolController()
    return None

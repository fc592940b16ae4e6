"""PyTorch's default dtype, which is global to all threads, while several references run at once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch

_state = threading.Condition()
_users = 0  # calls that need the default dtype as it is


@contextlib.contextmanager
def unchanged() -> Iterator[None]:
    """No thread enters :func:`float64_by_default` during the block, so that ``torch.zeros(3)`` has the usual dtype."""
    global _users
    with _state:
        _users += 1
    try:
        yield
    finally:
        with _state:
            _users -= 1
            _state.notify_all()


@contextlib.contextmanager
def float64_by_default() -> Iterator[None]:
    """Makes float64 the default dtype during the block, which must be short: other threads wait for its end in
    :func:`unchanged`. Waits itself until no block of that kind is running, and must not be entered within one."""
    with _state:
        _state.wait_for(lambda: not _users)
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(before)

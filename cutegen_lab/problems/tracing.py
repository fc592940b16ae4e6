"""Runs traces of references one at a time, without PyTorch's warnings."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator

_ONE = threading.RLock()


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Holds a process-wide lock while a reference is read or exported: ``torch.export`` and Python's warning filters
    use global state and are not thread-safe, and notebook cells read problems while runs of earlier cells work."""
    with _ONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

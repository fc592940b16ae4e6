"""One trace at a time, without PyTorch's warnings."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator

_ONE = threading.RLock()


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """For whoever reads or exports a reference. ``torch.export`` keeps where it is in the process's globals, as Python
    keeps the filters of warnings, and a notebook's cells read problems while runs of earlier cells are at work."""
    with _ONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

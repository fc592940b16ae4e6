"""PyTorch takes seconds to import: it is imported ahead in the background, while the first cell is still written."""

from __future__ import annotations

import importlib
import sys
import threading
from contextlib import suppress


def import_ahead() -> None:
    """Starts to import torch in the background. Only torch itself: another thread that needs a part of it waits for
    the whole, so that no two threads wait for parts the other holds. Not a daemon: the interpreter may not end while
    libraries are being loaded."""
    if "torch" not in sys.modules:
        threading.Thread(target=_import_torch, name="cutegen-import").start()


def _import_torch() -> None:
    with suppress(Exception):  # the cell that needs it reports the error
        importlib.import_module("torch")

"""PyTorch takes seconds to import: it is imported ahead in the background, while the first cell is still written."""

from __future__ import annotations

import importlib
import sys
import threading
from contextlib import suppress


def import_ahead() -> None:
    """Starts to import torch in the background. Only torch, not its submodules: another thread that needs a submodule
    waits for the whole package, so that two threads cannot deadlock on modules that the other is importing. Not a
    daemon thread: the interpreter may not end while libraries are being loaded."""
    if "torch" not in sys.modules:
        threading.Thread(target=_import_torch, name="cutegen-import").start()


def _import_torch() -> None:
    with suppress(Exception):  # the cell that needs it reports the error
        importlib.import_module("torch")

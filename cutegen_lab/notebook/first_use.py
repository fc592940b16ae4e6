"""PyTorch takes seconds to import: it is imported ahead in the background, and the first cell says that it waits."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from IPython.display import clear_output, display

_USED = "cutegen_lab.problems"  # imported by the first cell that needs torch


def import_ahead() -> None:
    """Starts to import torch in the background. Only torch itself: another thread that needs a part of it waits for
    the whole, so that no two threads wait for parts the other holds. Not a daemon: the interpreter may not end while
    libraries are being loaded."""
    if "torch" not in sys.modules:
        threading.Thread(target=_import_torch, name="cutegen-import").start()


def _import_torch() -> None:
    with suppress(Exception):  # the cell that needs it says why there is none
        importlib.import_module("torch")


@contextmanager
def loading() -> Iterator[None]:
    """Shows that PyTorch is being loaded, until the cell's next output replaces it; nothing where it is loaded."""
    if _USED in sys.modules:
        yield
        return
    display({"text/plain": "loading torch…"}, raw=True)
    try:
        yield
    finally:
        clear_output(wait=True)

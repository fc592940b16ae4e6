"""Priority of processes that compute in the background."""

from __future__ import annotations

import os

_NICE = 5  # a third of the share of a process at 0, where cores are scarce


def yield_cores() -> None:
    """Lets processes that someone waits for go first, such as the one that drives a GPU (``nice(2)``)."""
    os.nice(_NICE)

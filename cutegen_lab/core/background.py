"""Priority of processes that compute in the background."""

from __future__ import annotations

import os

_NICE = 5  # nice value: when all cores are busy, a third of the CPU time of a process at nice 0


def yield_cores() -> None:
    """Lowers this process's priority below that of processes that someone waits for, such as the one that drives a GPU
    (``nice(2)``)."""
    os.nice(_NICE)

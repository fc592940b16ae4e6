"""Seconds that a call takes on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def best(work: Callable[[], object], times: int = 3) -> float:
    return min(seconds(work) for _ in range(times))

"""Freed memory that stays with the process while a kernel is judged.

Tensors of hundreds of MB come and go by the dozen. glibc gives each back to the system, which fills the next with zeros
again: half of the time of a check. (mallopt(3): ``M_TRIM_THRESHOLD``, ``M_MMAP_MAX``, ``M_ARENA_MAX``.)
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_NEVER, _USUAL_TRIM, _USUAL_MMAPS = -1, 64 << 20, 65536
_IDLE_SECONDS = 10.0  # until memory goes back: the next candidate often comes sooner


class _Kept:
    """``holders`` are judging now; ``end`` gives the memory back when nobody has for a while."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        self._known = hasattr(self._libc, "mallopt") and hasattr(self._libc, "malloc_trim")  # glibc
        self._lock = threading.Lock()
        self._holders = 0
        self._end: threading.Timer | None = None

    def one_arena(self) -> None:
        if self._known:
            self._libc.mallopt(_ARENA_MAX, 1)

    @contextmanager
    def held(self) -> Iterator[None]:
        with self._lock:
            self._holders += 1
            if self._end is not None:
                self._end.cancel()
            self._set(_NEVER, 0)
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    self._end = threading.Timer(_IDLE_SECONDS, self._give_back)
                    self._end.daemon = True
                    self._end.start()

    def _give_back(self) -> None:
        with self._lock:
            if not self._holders and self._known:
                self._set(_USUAL_TRIM, _USUAL_MMAPS)
                self._libc.malloc_trim(0)

    def _set(self, trim: int, mmaps: int) -> None:
        if self._known:
            self._libc.mallopt(_TRIM_THRESHOLD, trim)
            self._libc.mallopt(_MMAP_MAX, mmaps)


_KEPT = _Kept()


def one_arena() -> None:
    """Threads that start from now on allocate where all do: an arena of their own holds no more than 64 MB, and what is
    larger would be mapped, and unmapped, all the same."""
    _KEPT.one_arena()


def kept_memory() -> AbstractContextManager[None]:
    """What is freed inside is used again, and goes back to the system some seconds after the end."""
    return _KEPT.held()

"""Keeps freed memory in the process while a kernel is judged.

Judging allocates and frees tensors of hundreds of MB dozens of times. By default glibc returns the memory of each to
the system, which zeroes the pages again; this takes half of a check's time. (mallopt(3): ``M_TRIM_THRESHOLD``,
``M_MMAP_MAX``, ``M_ARENA_MAX``.)
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -3, -4, -8
_NEVER, _USUAL_TRIM, _USUAL_MMAPS = -1, 64 << 20, 65536
_USUAL_MMAP_THRESHOLD = 32 << 20  # the maximum of glibc's dynamic threshold, which mallopt switches off
_IDLE_SECONDS = 10.0  # idle time before memory is returned: the next candidate often comes earlier


class _Kept:
    """Counts running judgements (``_holders``); a timer (``_end``) returns the memory some seconds after the last."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        # Only glibc has these functions.
        self._known = hasattr(self._libc, "mallopt") and hasattr(self._libc, "malloc_trim")
        self._lock = threading.Lock()
        self._holders = 0
        self._end: threading.Timer | None = None

    def one_arena(self) -> None:
        """Makes new threads share one malloc arena, for the rest of the process. An arena of their own holds at most 64
        MB; larger blocks would be mapped and unmapped each time."""
        if self._known:
            self._libc.mallopt(_ARENA_MAX, 1)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Memory freed inside is reused; it returns to the system some seconds after the block ends."""
        if not self._known:
            yield
            return
        try:
            with self._lock:
                self._holders += 1
                if self._end is not None:
                    self._end.cancel()
                self._set(_NEVER, 0)
            yield
        finally:
            with self._lock, suppress(RuntimeError):  # no new threads while the process ends: it keeps the memory
                self._holders -= 1
                if not self._holders:
                    self._end = threading.Timer(_IDLE_SECONDS, self._give_back)
                    self._end.daemon = True
                    self._end.start()

    def forked(self) -> None:
        """Resets the state in a forked child, where nobody is judging."""
        self._lock, self._holders, self._end = threading.Lock(), 0, None

    def _give_back(self) -> None:
        with self._lock:
            if not self._holders:
                self._set(_USUAL_TRIM, _USUAL_MMAPS)
                self._libc.mallopt(_MMAP_THRESHOLD, _USUAL_MMAP_THRESHOLD)
                self._libc.malloc_trim(0)

    def _set(self, trim: int, mmaps: int) -> None:
        self._libc.mallopt(_TRIM_THRESHOLD, trim)
        self._libc.mallopt(_MMAP_MAX, mmaps)


_KEPT = _Kept()
os.register_at_fork(after_in_child=_KEPT.forked)
one_arena, kept_memory = _KEPT.one_arena, _KEPT.held

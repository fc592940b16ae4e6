"""One driver for each run: a file lock, which the operating system releases when its process dies."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from cutegen_lab.core.errors import StoreError
from cutegen_lab.core.hints import Advice, Hint

_TRIES = 10  # attempts, 10 ms apart: a process that checks the lock holds it for microseconds


class Lease:
    """Exclusive right to drive a run, held from construction to :meth:`release`.

    Raises :class:`StoreError` naming the process that holds it, or why it cannot be locked. ``flock`` belongs to the
    open file, so a second lease in the same process fails too.
    """

    def __init__(self, folder: Path, run_id: str) -> None:
        path = _path(folder, run_id)
        self._fd: int | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            for left in reversed(range(_TRIES)):
                if _locked(self._fd, fcntl.LOCK_EX):
                    break
                if not left:
                    held_by = _pid(self._fd)
                    raise StoreError(
                        f"run {run_id} is being driven by process {held_by}", "Stop it there, or only watch it here."
                    )
                time.sleep(0.01)
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, str(os.getpid()).encode(), 0)
        except OSError as error:
            self.release()
            raise StoreError(f"cannot write {path}: {error.strerror}", Hint(Advice.MAKE_ROOM)) from error
        except StoreError:
            self.release()
            raise

    def release(self) -> None:
        """Releases the lease; may be called more than once."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def holder(folder: Path, run_id: str) -> str:
    """The process that drives ``run_id``; "" if none does. Safe for ids and lock files that someone else wrote."""
    if "/" in run_id or "\0" in run_id:
        return ""
    try:
        fd = os.open(_path(folder, run_id), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return "" if _locked(fd, fcntl.LOCK_SH) else _pid(fd)
    finally:
        os.close(fd)


def _path(folder: Path, run_id: str) -> Path:
    return folder / f"{run_id}.lock"


def _locked(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid(fd: int) -> str:
    return os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"

"""One driver a run: a lock the operating system takes back when its process dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from cutegen_lab.core.errors import StoreError


class Lease:
    """Exclusive right to drive a run, held from construction to :meth:`release`.

    Raises :class:`StoreError` naming the process that holds it. ``flock`` belongs to the open file, so a second lease
    in the same process is refused too.
    """

    def __init__(self, folder: Path, run_id: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._fd: int | None = os.open(folder / f"{run_id}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 32, 0).decode().strip() or "unknown"
            os.close(self._fd)
            self._fd = None
            raise StoreError(
                f"run {run_id} is being driven by process {holder}", "Stop it there, or only watch it here."
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Idempotent."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

"""Resource use of a build, as its supervisor sees it from outside."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Usage:
    """Resource use of one build, by its pid (0: not known yet) and the folder it writes to ("": a folder with limits of
    its own).

    Shared mappings escape resource limits, as do a privileged user's threads; the number of files has no limit. A
    forked build starts with the server's pages, so the memory limit applies to what it holds beyond those.
    """

    def __init__(self, limits: Mapping[str, Any], folder: str) -> None:
        self._limits, self._folder = limits, folder
        self._start = resident_bytes(os.getpid())

    def over(self, pid: int) -> str:
        """The limit that was exceeded: "memory", "threads" or "scratch"; "" if none."""
        limits = self._limits
        if pid and resident_bytes(pid) > self._start + limits["memory_bytes"]:
            return "memory"
        if pid and thread_count(pid) > limits["processes"]:
            return "threads"
        if self._folder and not holds(self._folder, limits["scratch_bytes"], limits["scratch_files"]):
            return "scratch"
        return ""


def resident_bytes(pid: int) -> int:
    """Resident memory of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def thread_count(pid: int) -> int:
    """Threads of a process; 0 if it has ended."""
    try:
        return Path(f"/proc/{pid}/task").stat().st_nlink - 2
    except OSError:
        return 0


def holds(folder: str, most_bytes: int, most_files: int) -> bool:
    """Whether the contents of ``folder`` are within the limits. A build cannot make folders or remove files
    (seccomp.py), so a listing shows everything."""
    size = count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            found = entry.stat(follow_symlinks=False)
            size, count = size + max(found.st_size, found.st_blocks * 512), count + 1
            if size > most_bytes or count > most_files:
                return False
    return True

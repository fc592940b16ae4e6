"""Memory of this machine, or of the container that this process runs in: a container's limit kills a process even if
the machine has free memory (cgroups(7), ``memory.max`` of version 2 and ``memory.limit_in_bytes`` of version 1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

# By cgroup version: folder below the root, file with the limit, file with the use, and the key in memory.stat of the
# cache that Linux reclaims first
_VERSIONS = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def total_bytes(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that all processes together may use. ``root``: where cgroups are mounted."""
    return min([int(psutil.virtual_memory().total), *(limit for limit, _ in _limits(root))])


def available_bytes(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes still available. ``root``: where cgroups are mounted."""
    left = [max(0, limit - used) for limit, used in _limits(root)]
    return min([int(psutil.virtual_memory().available), *left])


def _limits(root: Path) -> Iterator[tuple[int, int]]:
    """(limit, use) in bytes of each control group that contains this process and has a limit."""
    for folder, limit, used, cache in _VERSIONS:
        for group in _groups(root / folder, folder):
            try:
                most = int((group / limit).read_text())
                stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
                yield most, int((group / used).read_text()) - int(stat.get(cache, 0))
            except (OSError, ValueError):  # "max" (no limit), or no such group
                continue


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The control group of this process and its parents. In a container often only the container's own group is
    mounted."""
    try:
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        lines = []
    inner = next((path for _, names, path in lines if controller in names.split(",")), "/")
    own = root / inner.lstrip("/")
    yield from (group for group in (own, *own.parents) if group.is_relative_to(root) and group.is_dir())

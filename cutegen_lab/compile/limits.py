"""Limits on a build's use of the machine."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits of one build: one candidate, one config, one workload."""

    wall_seconds: float = 60.0
    """Maximum wall time in seconds."""
    cpu_seconds: int = 60
    """Maximum CPU time in seconds."""
    memory_bytes: int = 1536 * MIB
    """Maximum bytes allocated, besides those of the warm compiler that it is forked from; NVIDIA's largest example
    kernels need under 300 MB."""
    output_bytes: int = 4 * MIB
    """Maximum bytes printed."""
    reply_bytes: int = 64 * MIB
    """Maximum bytes of its answer."""
    file_bytes: int = 64 * MIB
    """Maximum bytes of each file that it writes."""
    open_files: int = 256
    """Maximum number of open files."""
    processes: int = 64
    """Maximum number of processes and threads."""
    scratch_bytes: int = 256 * MIB
    """Maximum bytes of all files that it writes, together."""
    scratch_files: int = 4096
    """Maximum number of files that it writes."""
    workspace_bytes: int = 64 << 30
    """Maximum bytes of scratch memory that the candidate declares for its device."""

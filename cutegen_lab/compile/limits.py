"""Limits on a build's use of the machine."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits of one build: one candidate, one config, one workload."""

    wall_seconds: float = 60.0
    """Most seconds of wall time."""
    cpu_seconds: int = 60
    """Most seconds of CPU time."""
    memory_bytes: int = 1536 * MIB
    """Most bytes allocated beyond the warm compiler it starts from; NVIDIA's largest example kernels need under
    300 MB."""
    output_bytes: int = 4 * MIB
    """Most bytes printed."""
    reply_bytes: int = 64 * MIB
    """Most bytes of its answer."""
    file_bytes: int = 64 * MIB
    """Most bytes of any one file it writes."""
    open_files: int = 256
    """Most open files."""
    processes: int = 64
    """Most processes and threads."""
    scratch_bytes: int = 256 * MIB
    """Most bytes of all files it writes."""
    scratch_files: int = 4096
    """Most files it writes."""
    workspace_bytes: int = 64 << 30
    """Most bytes of scratch memory that the candidate declares for its device."""

"""How much of the machine one build may use."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Bounds of one build (one candidate, one config, one workload). Times in seconds, sizes in bytes.

    ``memory_bytes`` is what a build may allocate beyond the warm compiler it starts from; NVIDIA's largest example
    kernels need under 300 MB. ``output_bytes`` bounds what it may print, ``reply_bytes`` what it may answer with,
    ``file_bytes`` any one file it writes, ``scratch_bytes`` and ``scratch_files`` all of them. ``workspace_bytes``
    bounds the scratch memory that a candidate declares, and its device has to allocate.
    """

    wall_seconds: float = 60.0
    cpu_seconds: int = 60
    memory_bytes: int = 1536 * MIB
    output_bytes: int = 4 * MIB
    reply_bytes: int = 64 * MIB
    file_bytes: int = 64 * MIB
    open_files: int = 256
    processes: int = 64
    scratch_bytes: int = 256 * MIB
    scratch_files: int = 4096
    workspace_bytes: int = 64 << 30

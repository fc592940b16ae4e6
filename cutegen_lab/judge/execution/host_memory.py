"""Recognises and explains a lack of host memory."""

from __future__ import annotations

from cutegen_lab.core.artifact import Build
from cutegen_lab.core.machine_memory import available_bytes
from cutegen_lab.core.problem import Workload

_MESSAGES = ("can't allocate memory", "out of memory", "not enough memory", "Cannot allocate memory")


def lacks_memory(error: Exception) -> bool:
    """Whether Python, or PyTorch on a CPU or GPU, could not allocate memory."""
    return isinstance(error, MemoryError) or any(text in str(error) for text in _MESSAGES)


def require_memory(bytes: int) -> None:
    """Raises MemoryError if less host memory is available: Linux would kill the process instead."""
    if bytes > (left := available_bytes()):
        raise MemoryError(f"not enough memory: {bytes / 2**30:.1f} GiB needed, {left / 2**30:.1f} GiB available")


def too_little_memory(workload: Workload, build: Build) -> str:
    """Reason for a verdict: memory of the tensors, and what to do."""
    total = sum(t.storage_bytes for t in workload.tensors + build.plan.workspace)
    return (
        f"this machine has not enough memory to judge {total / 2**30:.1f} GiB of tensors and their float64 "
        "reference; use smaller shapes, or declare less workspace"
    )

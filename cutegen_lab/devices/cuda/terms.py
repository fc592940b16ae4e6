"""What parent and worker agree on: how tensors lie in the shared memory file, and how a plan is timed."""

from __future__ import annotations

LAUNCHES = 30
WARM_UP = 5
METHOD = f"CUDA events, L2 flushed before each call, median of {LAUNCHES}"


def aligned(size: int) -> int:
    """Bytes one tensor takes: each starts on its own 256-byte boundary."""
    return -(-size // 256) * 256

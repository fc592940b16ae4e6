"""Positions that an index tensor gives."""

import cutlass


def nearest(at, count, wraps=False):
    """``at``, or of ``count`` positions the end that it lies beyond. Where it ``wraps``, one below 0 counts from the
    end, as PyTorch's ``x[index]`` has it."""
    if wraps:
        at = cutlass.select_(at < 0, at + count, at)
    return cutlass.min(cutlass.max(at, 0), count - 1)

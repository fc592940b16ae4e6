"""Positions along a dimension, from an index tensor."""

import cutlass


def nearest(at, count, wraps=False):
    """``at``, clamped to ``count`` positions. If ``wraps``, a negative position first counts from the end, as in
    PyTorch's ``x[index]``."""
    if wraps:
        at = cutlass.select_(at < 0, at + count, at)
    return cutlass.min(cutlass.max(at, 0), count - 1)

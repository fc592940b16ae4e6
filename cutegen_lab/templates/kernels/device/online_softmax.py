"""Sums of exponentials relative to a running maximum."""

import cutlass.cute as cute
from cutlass import Float32

FAST = False  # whether to use the hardware's exponential


@cute.jit
def finite(top: Float32):
    """The number subtracted from exponents: the maximum, or 0 if it is -inf (then all values so far are -inf)."""
    return top if top > -Float32.inf else Float32(0.0)


@cute.jit
def zero_if_infinite(top: Float32):
    """Like ``finite``, but 0 for +inf too, as in logsumexp."""
    return Float32(0.0) if cute.math.abs(top) == Float32.inf else top


SHIFT = finite  # maps the maximum to the number subtracted from exponents


@cute.jit
def rescale(before: Float32, after: Float32):
    """Factor by which a sum of exponentials is rescaled from the maximum ``before`` to ``after``."""
    return Float32(1.0) if before == after else cute.math.exp(before - after, fastmath=FAST)

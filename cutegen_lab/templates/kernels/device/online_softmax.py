"""Sums of exponentials relative to a maximum that grows as a row is walked."""

import cutlass.cute as cute
from cutlass import Float32

FAST = False  # by the hardware's exponential?


@cute.jit
def finite(top: Float32):
    """What exponents are taken relative to; nothing but -inf was seen where that is the maximum."""
    return top if top > -Float32.inf else Float32(0.0)


@cute.jit
def zero_if_infinite(top: Float32):
    """``finite`` as logsumexp has it."""
    return Float32(0.0) if cute.math.abs(top) == Float32.inf else top


SHIFT = finite  # of a maximum: what exponents are taken relative to


@cute.jit
def rescale(before: Float32, after: Float32):
    """What a sum of exponentials relative to one maximum is multiplied by for another."""
    return Float32(1.0) if before == after else cute.math.exp(before - after, fastmath=FAST)

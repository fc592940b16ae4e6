"""Functions that expressions and reductions call, on fp32 vectors or on two numbers. Every kernel file can use them."""

import cutlass.cute as cute
from cutlass import Float32


def sigmoid(x):
    return 1.0 / (1.0 + cute.math.exp(-x))


def fast_sigmoid(x):
    """Uses the hardware's exponential. A single tanh would be cheaper, but is wrong by 1% at -9 on an H200."""
    return cute.math.rcp(1.0 + cute.math.exp(-x, fastmath=True), approx=True, ftz=True)


def fast_erf(x):
    """Error at most 6e-7, in fp32 (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26)."""
    t = cute.math.rcp(1.0 + 0.3275911 * cute.math.abs(x), approx=True, ftz=True)
    series = t * (1.421413741 + t * (t * 1.061405429 - 1.453152027)) - 0.284496736
    rest = t * (t * series + 0.254829592) * cute.math.exp(-(x * x), fastmath=True)
    return cute.where(x < 0.0, rest - 1.0, 1.0 - rest)


def choose(condition, yes, no):
    """The number ``yes`` where the vector ``condition`` holds, the number ``no`` elsewhere."""
    return cute.where(condition, cute.full_like(condition, yes, Float32), cute.full_like(condition, no, Float32))


def plus(a, b):
    return a + b


def times(a, b):
    return a * b


def larger(a, b):
    return cute.arch.fmax(a, b, nan=True)


def smaller(a, b):
    return cute.arch.fmin(a, b, nan=True)


def larger_each(x, y):
    return cute.math.max(x, y, propagate_nan=True)


def smaller_each(x, y):
    return cute.math.min(x, y, propagate_nan=True)

"""Names of the draws of inputs, and groups of them."""

from __future__ import annotations

FLOAT_LIMITS = "float ends"  # only for references that choose, copy and compare; others may overflow
CONSTANTS = "named numbers"
PATTERN = "pattern "  # followed by a number: one kind of pattern for a whole tensor
ALL_TRUE = f"{PATTERN}0"  # a mask whose elements are all true
PATCHWORK, MOSAIC, PERIODIC = "patchwork", "mosaic", "periodic"
# Parts hidden by −∞, as by an additive mask; by +∞, for references that negate.
HIDDEN, HIDDEN_ABOVE = "hidden", "hidden above"
HIDDEN_ROWS = "hidden rows"  # only for references whose results stay finite
NEAR_F16_LIMIT = "near the f16 limit"
# Followed by a number: normal values of this size, which the schedule spreads from ``SIZES[0]`` up.
OF_SIZE = "of size "
SPECIALS = "specials"
SEVERAL_NOT_FINITE = "several not finite"
ONE_SIDED = "one-sided"
CONSTANT_ROWS = "constant rows"
FAR_FROM_ZERO = "far from zero"
EXPONENTS = "all exponents"  # only for elementwise references: squares and sums would overflow
MIXED_ROWS = (PATCHWORK, PERIODIC)
WITH_CONSTANTS = (CONSTANTS, MOSAIC)
# Draws for which PyTorch itself may lose all accuracy of an element.
LOSSY_IN_TORCH = (SPECIALS, SEVERAL_NOT_FINITE, PATCHWORK, MOSAIC, FAR_FROM_ZERO, EXPONENTS, FLOAT_LIMITS, CONSTANTS,
                  NEAR_F16_LIMIT)  # fmt: skip
# Draws whose magnitudes differ between rows or columns, without rows in a function's vanishing tail.
BY_SLICE = ("graded", "log-uniform", "heavy", "block-sparse", "low rank", "loud end", "quiet rows", PATCHWORK,
            MOSAIC, CONSTANTS)  # fmt: skip
FULL_RANGE = "full integers"
INTEGER_LIMITS = "integer ends"  # smallest and largest numbers of the type, and their neighbours
# For references to which the missing absolute value of the smallest number matters.
INTEGER_LIMITS_BUT_LEAST = "integer ends but the least"
LOG_INTEGERS = "log-uniform integers"
ROW_INTEGERS = "integers of a row's size"  # each row below another power of two: tests halves, bytes and carries
MULTIPLES = "multiples"  # multiples of another input and their neighbours: quotients equal or close to an integer
OVERFLOWING = (FULL_RANGE, INTEGER_LIMITS, LOG_INTEGERS, ROW_INTEGERS, MULTIPLES)
WIDE_RANGE = "wide integers"  # the widest range whose sums over any dimension fit in 32 bits
NOT_FINITE = ("nan", "infinity", SEVERAL_NOT_FINITE, PATCHWORK, MOSAIC, HIDDEN, HIDDEN_ABOVE)
ESSENTIAL = ("large", "zeros", "nan", "infinity")  # no workload is judged without these
# Followed by a number: normal values with this mean, which the schedule spreads over ±``AROUND_UP_TO``.
AROUND = "around "

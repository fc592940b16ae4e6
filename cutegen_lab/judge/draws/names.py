"""Names of the draws of inputs, and groups of them."""

from __future__ import annotations

FLOAT_LIMITS = "float ends"  # for references that only choose, copy and compare: all others may overflow
CONSTANTS = "named numbers"
PATTERN = "pattern "  # and a number: one kind for a whole tensor
PATCHWORK, MOSAIC, PERIODIC = "patchwork", "mosaic", "periodic"
HIDDEN, HIDDEN_ABOVE = "hidden", "hidden above"  # by −∞, as a mask that is added does; by +∞, for who negates
OF_SIZE = "of size "  # and a number: normal values of this size, which the schedule spreads from ``SIZES[0]`` up
SPECIALS = "specials"
SEVERAL_NOT_FINITE = "several not finite"
ONE_SIDED = "one-sided"
CONSTANT_ROWS = "constant rows"
FAR_FROM_ZERO = "far from zero"
EXPONENTS = "all exponents"  # for references that add up nothing: squares and sums would overflow
MIXED_ROWS = (PATCHWORK, PERIODIC)
# PyTorch itself may lose everything of an element of these.
LOSSY_IN_TORCH = (SPECIALS, SEVERAL_NOT_FINITE, PATCHWORK, MOSAIC, FAR_FROM_ZERO, EXPONENTS, FLOAT_LIMITS, CONSTANTS)
# Magnitudes differ between rows or columns, and no row lies in a function's vanishing tail.
BY_SLICE = ("graded", "log-uniform", "heavy", "block-sparse", "low rank", "loud end", "quiet rows", PATCHWORK,
            MOSAIC, CONSTANTS)  # fmt: skip
FULL_RANGE = "full integers"
INTEGER_LIMITS = "integer ends"  # the smallest and largest of the type, and what is next to them
INTEGER_LIMITS_BUT_LEAST = "integer ends but the least"  # … where its absolute value, which no type holds, would matter
LOG_INTEGERS = "log-uniform integers"
ROW_INTEGERS = "integers of a row's size"  # whose halves, bytes and carries decide, whatever the size
MULTIPLES = "multiples"  # … of another input, and what lies next to them: quotients at a whole number
OVERFLOWING = (FULL_RANGE, INTEGER_LIMITS, LOG_INTEGERS, ROW_INTEGERS, MULTIPLES)
WIDE_RANGE = "wide integers"  # the widest whose sums, over any dimension, stay within 32 bits
NOT_FINITE = ("nan", "infinity", SEVERAL_NOT_FINITE, PATCHWORK, MOSAIC, HIDDEN, HIDDEN_ABOVE)
ESSENTIAL = ("large", "zeros", "nan", "infinity")  # no workload is judged without these
AROUND = "around "  # and a number: normal values with this mean, which the schedule spreads over ±``AROUND_UP_TO``,

"""Vector widths of loads and stores. Host arithmetic: shapes and strides are Python ints."""

import math

import cutlass.cute as cute


def widest(x, along):
    """Number of neighbours along a mode of ``x`` that one load of up to 16 bytes takes. Host arithmetic."""
    if x.stride[along] != 1:
        return 1
    pitches = leaves([x.stride[d] for d in range(3) if d != along])
    return math.gcd(128 // x.element_type.width, cute.size(x, mode=[along]), *pitches)


def leaves(numbers):
    return [leaf for n in numbers for leaf in ([n] if isinstance(n, int) else leaves(n))]

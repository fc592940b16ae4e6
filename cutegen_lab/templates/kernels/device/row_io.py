"""A thread's vectors of a row, from memory to registers and back.

A tensor is (values of a vector, vectors of a row, rows); a thread's are ``start``, ``start + stride``, … of ``row``.
The first ``sure`` of them are there for every thread, the rest where they are in the row. A negative ``stride`` is a
walk from the row's end. A problem may put another function in ``LOAD``'s place.
"""

import cutlass
import cutlass.cute as cute

LOAD = cute.autovec_copy  # of a vector, to registers


@cute.jit
def fetch(
    gX: cute.Tensor,
    rX: cute.Tensor,
    row: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    sure: cutlass.Constexpr,
):
    """Loads a thread's vectors of one step, ``start``, ``start + stride``, … of ``row``; ``sure`` are always there."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if i < sure or (column >= 0 if stride < 0 else column < cute.size(gX, mode=[1])):
            LOAD(gX[None, column, row], rX[None, i])


@cute.jit
def put(
    rX: cute.Tensor,
    gX: cute.Tensor,
    row: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    sure: cutlass.Constexpr,
):
    """Stores what ``fetch`` would load."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if i < sure or (column >= 0 if stride < 0 else column < cute.size(gX, mode=[1])):
            cute.autovec_copy(rX[None, i], gX[None, column, row])

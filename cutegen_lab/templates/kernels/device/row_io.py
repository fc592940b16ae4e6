"""Loads and stores of a thread's vectors of a row.

Tensors are (values of a vector, vectors of a row, rows). A thread has vectors ``start``, ``start + stride``, … of
``row``. The first ``unpredicated`` of them lie in the row for every thread; the others need a predicate. A negative
``stride`` goes from the row's end to its start. A generated module may replace ``LOAD``.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.positions import nearest

LOAD = cute.autovec_copy  # loads a vector to registers


@cute.jit
def fetch(
    gX: cute.Tensor,
    rX: cute.Tensor,
    row: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
):
    """Loads vectors ``start``, ``start + stride``, … of ``row``, the first ``unpredicated`` without predicates."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if i < unpredicated or (column >= 0 if stride < 0 else column < cute.size(gX, mode=[1])):
            LOAD(gX[None, column, row], rX[None, i])


@cute.jit
def put(
    rX: cute.Tensor,
    gX: cute.Tensor,
    row: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
):
    """Stores the vectors that ``fetch`` loads."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if i < unpredicated or (column >= 0 if stride < 0 else column < cute.size(gX, mode=[1])):
            cute.autovec_copy(rX[None, i], gX[None, column, row])


def positions(start, stride, shape):
    """Index along the row of each of a thread's values, in fp32."""
    rColumn = cute.make_rmem_tensor(shape, Float32)
    vec, loads = shape
    for i in range(loads):
        for j in range(vec):
            rColumn[j, i] = Float32((start + i * stride) * vec + j)
    return rColumn.load()


def pick(gX, at, row, wraps=False):
    """Element ``at`` of a row, in fp32; a position past an end is clamped. If ``wraps``, a negative position first
    counts from the end."""
    return Float32(gX[nearest(cutlass.Int32(at), cute.size(gX, mode=[0]), wraps), row])

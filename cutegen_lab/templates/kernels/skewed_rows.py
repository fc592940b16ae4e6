"""Rows whose length no vector divides, one right after another: vectors are aligned in memory and not in the row.

The first and the last vector that a row touches may be partly its neighbours'. They are read whole, which is memory of
the same tensor; only the row's own values count, and only those are written. A row begins with vector ``begin``, after
``skew`` values of the row before. All else is as in ``row_reduction``.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.cluster_reduce import cluster_reduce
from cutegen_lab.templates.kernels.device.finish import total_kernel  # noqa: F401 - of totals
from cutegen_lab.templates.kernels.device.lasting_loads import load_lasting
from cutegen_lab.templates.kernels.device.moments import centre_of, cluster_moments, row_moments, together
from cutegen_lab.templates.kernels.device.online_softmax import finite, rescale
from cutegen_lab.templates.kernels.device.overlap import overlapping
from cutegen_lab.templates.kernels.device.row_io import LOAD, pick, positions
from cutegen_lab.templates.kernels.device.row_reduce import pairwise, row_reduce
from cutegen_lab.templates.kernels.device.row_staging import stage, stageable, unstage
from cutegen_lab.templates.kernels.rules.row_reduction import why_not

# What the kernel of a problem is made of, beside what this file has.
__all__ = [
    "centre_of",
    "cluster_moments",
    "cluster_reduce",
    "finite",
    "load_lasting",
    "overlapping",
    "pick",
    "positions",
    "rescale",
    "row_moments",
    "row_reduce",
    "stage",
    "stageable",
    "together",
    "unstage",
    "why_not",
]


@cute.jit
def fetch(
    gX: cute.Tensor,
    rX: cute.Tensor,
    begin: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    sure: cutlass.Constexpr,
    tail: cutlass.Int32,
):
    """Loads a thread's vectors of one step, of those that a row touches. The tensor ends with ``tail`` values that are
    no whole vector; knowing how many, the compiler would read one."""
    whole = cute.size(gX, mode=[2]) - 1
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if cutlass.const_expr(i < sure):
            LOAD(gX[None, column, begin], rX[None, i])
        elif column < cute.size(gX, mode=[1]):
            if begin + column < whole:
                LOAD(gX[None, column, begin], rX[None, i])
            else:
                left = (whole - begin - column) * cute.size(rX, mode=[0]) + tail
                for j in cutlass.range_constexpr(cute.size(rX, mode=[0])):
                    if j < left:
                        rX[j, i] = gX[j, column, begin]


@cute.jit
def put(
    rX: cute.Tensor,
    gX: cute.Tensor,
    begin: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    sure: cutlass.Constexpr,
    skew: cutlass.Int32,
    n: cutlass.Constexpr,
):
    """Stores what of those vectors is the row's."""
    vec = cute.size(rX, mode=[0])
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        before = skew - column * vec
        if cutlass.const_expr(i > 0 and i < sure) or (before <= 0 and before + n >= vec):
            cute.autovec_copy(rX[None, i], gX[None, column, begin])
        else:
            for j in cutlass.range_constexpr(vec):
                if j >= before and j < before + n:
                    gX[j, column, begin] = rX[j, i]


def fold(values, combine, neutral, start, stride, row, sure):
    """Reduces a thread's values of one step, pairwise; a neighbour's count for nothing. ``row``: (skew, length)."""
    rValue = cute.make_rmem_tensor(values.shape, Float32)
    rValue.store(values)
    skew, n = row
    vec, held = values.shape
    parts = []
    for i in range(held):
        part = pairwise([rValue[j, i] for j in range(vec)], combine)
        if i == 0 or i >= sure:
            part = own(rValue[None, i], part, skew - (start + i * stride) * vec, n, combine, neutral)
        parts.append(part)
    return pairwise(parts, combine)


@cute.jit
def own(
    rValue: cute.Tensor,
    part: Float32,
    before: cutlass.Int32,
    n: cutlass.Constexpr,
    combine: cutlass.Constexpr,
    neutral: cutlass.Constexpr,
):
    """``part``, or that of the values that are the row's: those from ``before`` on, ``n`` of them."""
    vec = cute.size(rValue)
    result = part
    if before > 0 or before + n < vec:
        inner = [cutlass.select_((before <= j) & (j < before + n), rValue[j], Float32(neutral)) for j in range(vec)]
        result = pairwise(inner, combine)
    return result


def inside(start, stride, row, mine, sure):
    """How many of a thread's values of one step are the row's."""
    skew, n = row
    vec, held = mine.shape
    count = cutlass.Int32(0)
    for i in range(held):
        before = skew - (start + i * stride) * vec
        count += cutlass.max(cutlass.min(before + n, vec) - cutlass.max(before, 0), 0)
    return Float32(count)


def share_of_row(n, vec, stride, loads):
    """As for rows that begin with a vector: a row touches up to two vectors more than it fills."""
    vectors = n // vec if n % vec == 0 else (n + vec - 2) // vec + 1
    held = min(loads, -(-vectors // stride))
    steps = -(-vectors // (stride * held))
    sure = held if n % vec == 0 and vectors % (stride * held) == 0 else n // vec // stride if steps == 1 else 0
    return vectors, held, steps, sure

"""Rows whose length no vector divides, one right after another: vectors are aligned in memory and not in the row.

The first and the last vector that a row touches may be partly its neighbours'. They are read whole, which is memory of
the same tensor; only the row's own values count, and only those are written. Device functions, as text, which stand
in the place of those of the same name in ``pieces``.
"""

from __future__ import annotations

import math

from cutegen_lab.templates.expr import Graph
from cutegen_lab.templates.families.rows.pieces import WITHIN
from cutegen_lab.templates.views import Views

FROM = 256  # shorter rows are read element by element


def width_of(graph: Graph, vec: int) -> int:
    """Values of a vector, of ``vec`` at most."""
    n = math.prod(graph.space[d] for d in graph.reduced)
    run = Views.nameless(graph).run(graph.reduced)
    return vec if n % vec and skewed(graph) else math.gcd(math.prod(graph.space[d] for d in run), vec)


def skewed(graph: Graph) -> bool:
    """Long enough, and every tensor that walks along rows has all of them, and nothing between."""
    everywhere = range(len(graph.space))
    along = [view for view in Views.nameless(graph) if any(view.dims[d] is not None for d in graph.reduced)]
    whole = all(view.dense(everywhere) and not view.starts and view.picked is None for view in along)
    return whole and math.prod(graph.space[d] for d in graph.reduced) >= FROM


FETCH = '''
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
    """Loads a thread's vectors of one step, ``start``, ``start + stride``, … of those that a row touches; ``sure`` are
    always there. The tensor ends with ``tail`` values that are no whole vector; knowing how many, the compiler would
    read one."""
    whole = cute.size(gX, mode=[2]) - 1
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if cutlass.const_expr(i < sure):
            cute.autovec_copy(gX[None, column, begin], rX[None, i])
        elif column < cute.size(gX, mode=[1]):
            if begin + column < whole:
                cute.autovec_copy(gX[None, column, begin], rX[None, i])
            else:
                left = (whole - begin - column) * cute.size(rX, mode=[0]) + tail
                for j in cutlass.range_constexpr(cute.size(rX, mode=[0])):
                    if j < left:
                        rX[j, i] = gX[j, column, begin]
'''

PUT = '''
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
        if cutlass.const_expr(0 < i and i < sure):
            cute.autovec_copy(rX[None, i], gX[None, column, begin])
        elif before <= 0 and before + n >= vec:
            cute.autovec_copy(rX[None, i], gX[None, column, begin])
        else:
            for j in cutlass.range_constexpr(vec):
                if j >= before and j < before + n:
                    gX[j, column, begin] = rX[j, i]
'''

FOLD = (
    '''
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
        inner = [within((before <= j) & (j < before + n), rValue[j], Float32(neutral)) for j in range(vec)]
        result = pairwise(inner, combine)
    return result
'''
    + WITHIN
)

INSIDE = '''
def inside(start, stride, row, mine, sure):
    """How many of a thread's values of one step are the row's."""
    skew, n = row
    vec, held = mine.shape
    count = cutlass.Int32(0)
    for i in range(held):
        before = skew - (start + i * stride) * vec
        count += cutlass.max(cutlass.min(before + n, vec) - cutlass.max(before, 0), 0)
    return Float32(count)
'''

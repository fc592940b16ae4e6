"""Adjacent rows whose length is no multiple of the vector width: vectors are aligned in memory, not in the row.

The first and the last vector that a row touches may hold values of neighbouring rows. They are loaded whole, since this
memory belongs to the same tensor, but only the row's own values are reduced and stored. A row begins in vector
``begin``, after ``skew`` values of the previous row. All else is as in ``row_reduction``.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.finish import reduce_partials  # noqa: F401 - of totals
from cutegen_lab.templates.kernels.device.lasting_loads import load_lasting  # noqa: F401 - for LOAD
from cutegen_lab.templates.kernels.device.online_softmax import zero_if_infinite  # noqa: F401 - for SHIFT
from cutegen_lab.templates.kernels.device.row_io import LOAD, pick, positions  # noqa: F401 - pick: for per_row
from cutegen_lab.templates.kernels.device.row_reduce import pairwise
from cutegen_lab.templates.kernels.device.views import view  # noqa: F401 - for launch
from cutegen_lab.templates.kernels.limits.row_reduction import why_not  # noqa: F401
from cutegen_lab.templates.kernels.row_reduction import reduce_rows  # noqa: F401

OVERRIDES = ("columns_of_step", "fetch", "fold", "inside", "put", "share_of_row")


def dynamic_tail(tail):
    """(``tail``,) as a number known only at run time: for a constant, the compiler would load the last vector whole."""
    return (cutlass.Int32(tail),)


def skewed_at(source_row, n, vec, tail):
    """The position of a row, for ``fetch``, ``put`` and for predicates: each (first vector, skew, length of the row,
    tail). ``tail``: number of values at the end of the tensor that do not fill a vector."""
    begin = source_row * (n // vec) + source_row * (n % vec) // vec  # first vector that the row touches
    skew = source_row * (n % vec) % vec  # values of the previous row in this vector
    at = (begin, skew, n, tail)
    return at, at, at


def columns_of_step(start, bounds, share):
    """Indices along the row of a thread's values of one step."""
    _, shape, stride, _, _ = share
    _, skew, _, _ = bounds
    return positions(start, stride, shape) - Float32(skew)


@cute.jit
def fetch(
    gX: cute.Tensor,
    rX: cute.Tensor,
    source: tuple,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
):
    """Loads a thread's vectors of one step, among those that the row touches. The last ``tail`` values of the tensor do
    not fill a vector."""
    begin, _, _, tail = source
    whole = cute.size(gX, mode=[2]) - 1
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if cutlass.const_expr(i < unpredicated):
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
    target: tuple,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
):
    """Stores the row's own values of the vectors that ``fetch`` loads."""
    begin, skew, n, _ = target
    vec = cute.size(rX, mode=[0])
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        before = skew - column * vec
        if cutlass.const_expr(i > 0 and i < unpredicated) or (before <= 0 and before + n >= vec):
            cute.autovec_copy(rX[None, i], gX[None, column, begin])
        else:
            for j in cutlass.range_constexpr(vec):
                if j >= before and j < before + n:
                    gX[j, column, begin] = rX[j, i]


def fold(values, combine, neutral, start, bounds, share):
    """Reduces a thread's values of one step pairwise. Values of neighbouring rows count as ``neutral``."""
    _, shape, stride, _, unpredicated = share
    rValue = cute.make_rmem_tensor(shape, Float32)
    if isinstance(values, cute.TensorSSA):
        rValue.store(values)
    else:
        rValue.fill(values)
    _, skew, n, _ = bounds
    vec, vecs_per_step = shape
    parts = []
    for i in range(vecs_per_step):
        part = pairwise([rValue[j, i] for j in range(vec)], combine)
        if i == 0 or i >= unpredicated:
            part = part_of_row(rValue[None, i], part, skew - (start + i * stride) * vec, n, combine, neutral)
        parts.append(part)
    return pairwise(parts, combine)


@cute.jit
def part_of_row(
    rValue: cute.Tensor,
    part: Float32,
    before: cutlass.Int32,
    n: cutlass.Constexpr,
    combine: cutlass.Constexpr,
    neutral: cutlass.Constexpr,
):
    """``part`` if the whole vector belongs to the row; else reduces its values ``before`` to ``before + n - 1``."""
    vec = cute.size(rValue)
    result = part
    if before > 0 or before + n < vec:
        inner = [cutlass.select_((before <= j) & (j < before + n), rValue[j], Float32(neutral)) for j in range(vec)]
        result = pairwise(inner, combine)
    return result


def inside(start, bounds, share):
    """Number of a thread's values of one step that belong to the row, in fp32."""
    _, shape, stride, _, _ = share
    _, skew, n, _ = bounds
    vec, vecs_per_step = shape
    count = cutlass.Int32(0)
    for i in range(vecs_per_step):
        before = skew - (start + i * stride) * vec
        count += cutlass.max(cutlass.min(before + n, vec) - cutlass.max(before, 0), 0)
    return Float32(count)


def share_of_row(n, vec, stride, loads):
    """Like ``row_reduction``'s, but a row that begins inside a vector touches up to two vectors more than it fills."""
    num_vecs = n // vec if n % vec == 0 else (n + vec - 2) // vec + 1
    vecs_per_step = min(loads, -(-num_vecs // stride))
    steps = -(-num_vecs // (stride * vecs_per_step))
    even = n % vec == 0 and num_vecs % (stride * vecs_per_step) == 0
    unpredicated = vecs_per_step if even else n // vec // stride if steps == 1 else 0
    return num_vecs, vecs_per_step, steps, unpredicated

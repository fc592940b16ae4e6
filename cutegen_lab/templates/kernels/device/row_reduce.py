"""Reductions of one value per thread over the threads of a row, and pairwise reductions of values in registers."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32


@cute.jit
def row_reduce(
    value: Float32,
    buffer: cute.Tensor,
    op: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
):
    """Reduces one value per thread over the threads of a row. Every thread of the row gets the result.

    A warp reduces by shuffles. The warps of a row exchange their results through ``buffer`` (rows per block, warps per
    row): every thread reads all results of its row, which is faster than a second round of shuffles.
    """
    result = cute.arch.warp_reduction(value, op, threads_in_group=min(threads_per_row, 32))
    if cutlass.const_expr(threads_per_row > 32):
        tidx, _, _ = cute.arch.thread_idx()
        local_row = tidx // threads_per_row
        if tidx % 32 == 0:
            buffer[local_row, tidx % threads_per_row // 32] = result
        cute.arch.sync_threads()
        result = pairwise(values_of(buffer[local_row, None]), op)
    return result


def values_of(sX):
    rX = cute.make_fragment_like(sX)
    cute.autovec_copy(sX, rX)
    return [rX[i] for i in range(cute.size(rX))]


def pairwise(parts, combine):
    while len(parts) > 1:
        odd = parts[len(parts) // 2 * 2 :]
        parts = [combine(a, b) for a, b in zip(parts[::2], parts[1::2])] + odd
    return parts[0]


@cute.jit
def within(there: cutlass.Boolean, value: Float32, neutral: Float32):
    return value if there else neutral

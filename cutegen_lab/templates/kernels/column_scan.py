"""What kernels for scans along a dimension that is not the last call: loads, stores, and the scan of a step.

Threads lie along the contiguous columns and walk down them in steps, or up from their end (``stride`` < 0). Of a step's
rows each slice of a block takes ``loads`` that follow one another. ``ragged``: rows of the last may lie past the end.
"""

import cutlass
import cutlass.cute as cute


@cute.jit
def fetch(
    gX: cute.Tensor,
    rX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    ragged: cutlass.Constexpr,
):
    """Loads a thread's vectors of one step: rows ``start``, ``start + stride``, … of its columns."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if not ragged or (row >= 0 if stride < 0 else row < cute.size(gX, mode=[cute.rank(gX) - 1])):
            cute.autovec_copy(gX[None, column, row], rX[None, i])


@cute.jit
def spread(
    gX: cute.Tensor,
    rX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    ragged: cutlass.Constexpr,
):
    """Loads what has one value for all columns of a vector."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if not ragged or (row >= 0 if stride < 0 else row < cute.size(gX, mode=[cute.rank(gX) - 1])):
            rX[None, i].fill(gX[column, row])


@cute.jit
def put(
    rX: cute.Tensor,
    gX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    ragged: cutlass.Constexpr,
):
    """Stores what ``fetch`` would load."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if not ragged or (row >= 0 if stride < 0 else row < cute.size(gX, mode=[cute.rank(gX) - 1])):
            cute.autovec_copy(rX[None, i], gX[None, column, row])


@cute.jit
def fetch_after(
    gX: cute.Tensor,
    rX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    padding: cutlass.Constexpr,
):
    """As ``fetch``, with zeros before the first row."""
    rX.fill(0.0)
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if row >= padding and row < cute.size(gX, mode=[2]):
            cute.autovec_copy(gX[None, column, row - padding], rX[None, i])


@cute.jit
def column_scan(
    rX: cute.Tensor,
    parts: cute.Tensor,
    rCarried: cute.Tensor,
    turn: cutlass.Int32,
    op: cutlass.Constexpr,
    slices: cutlass.Constexpr,
):
    """Scans a step in place: ``rX`` (values of a vector, rows) a thread, whose slice follows those before it.

    ``rCarried`` comes before the step, and then before the next. ``parts`` are partial results (values of a vector,
    threads, slices, 2): a warp that is a step ahead writes to the other half.
    """
    tidx, slice_, _ = cute.arch.thread_idx()
    loads = rX.shape[1]
    for i in cutlass.range_constexpr(1, loads):
        rX[None, i].store(op(rX[None, i - 1].load(), rX[None, i].load()))
    cute.autovec_copy(rX[None, loads - 1], parts[None, tidx, slice_, turn])
    cute.arch.sync_threads()
    rStart = cute.make_fragment_like(rCarried)
    rStart.store(rCarried.load())
    for other in cutlass.range_constexpr(slices):
        part = parts[None, tidx, other, turn].load()
        if other < slice_:
            rStart.store(op(rStart.load(), part))
        rCarried.store(op(rCarried.load(), part))
    for i in cutlass.range_constexpr(loads):
        rX[None, i].store(op(rStart.load(), rX[None, i].load()))

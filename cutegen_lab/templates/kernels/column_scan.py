"""Scans along a dimension that is not the last. Threads are spread over the contiguous columns.

Threads go down the rows in steps, or up from the last row. In a step, each slice of a block takes ``loads`` consecutive
rows. The slices exchange their totals through a double buffer in shared memory, so that one barrier per step is enough.
The prefix of all earlier steps is carried in registers. Tensors are (values of a vector, columns, rows), or (columns,
rows) with one value for a whole vector.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait
from cutegen_lab.templates.kernels.device.views import view  # noqa: F401 - for launch


def scan_columns(gXs, gOuts, before, after, ops, sizes, paddings, reverse, threads, slices, loads, stream):
    """Launches a block per ``threads`` vectors of columns."""
    columns = cute.size(gOuts[0], mode=[1])
    scan_kernel(gXs, gOuts, before, after, ops, sizes, paddings, reverse, threads, slices, loads).launch(
        grid=[(columns + threads - 1) // threads, 1, 1],
        block=[threads, slices, 1],
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


@cute.kernel
def scan_kernel(
    gXs: tuple,
    gOuts: tuple,
    before: cutlass.Constexpr,
    after: cutlass.Constexpr,
    ops: cutlass.Constexpr,
    sizes: cutlass.Constexpr,
    paddings: cutlass.Constexpr,
    reverse: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    slices: cutlass.Constexpr,
    loads: cutlass.Constexpr,
):
    """``before`` maps fp32 inputs to the values to scan, ``after`` the scanned values and inputs to the outputs.
    ``ops`` has (combine, neutral element) per scan, ``paddings`` the number of zero rows before each input."""
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    tidx, slice_, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    vec, columns, n = (cute.size(gOuts[0], mode=[d]) for d in range(3))
    column = bidx * threads + tidx
    # Threads past the last column recompute it and store nothing, so that all threads reach each barrier.
    source = cutlass.min(column, columns - 1)
    share = slices * loads  # rows per step
    ragged = n % share != 0
    smem = cutlass.utils.SmemAllocator()
    parts = [smem.allocate_tensor(Float32, cute.make_layout((vec, threads, slices, 2)), 16) for _ in ops]
    rCarried = [cute.make_rmem_tensor(vec, Float32) for _ in ops]  # prefix of all earlier steps
    rScanned = [cute.make_rmem_tensor((vec, loads), Float32) for _ in ops]
    rXs = [cute.make_rmem_tensor((vec, loads), gX.element_type) for gX in gXs]
    rOuts = [cute.make_rmem_tensor((vec, loads), gOut.element_type) for gOut in gOuts]
    for rEach, start_value in zip((*rXs, *rCarried), (*[0.0 for _ in gXs], *[neutral for _, neutral in ops])):
        rEach.fill(start_value)
    for step in cutlass.range((n + share - 1) // share, unroll=1):
        start, stride = (step * slices + slice_) * loads, 1
        if cutlass.const_expr(reverse):
            start, stride = n - 1 - start, -1
        for gX, rX, padding in zip(gXs, rXs, paddings):
            if cutlass.const_expr(padding > 0):
                fetch_after(gX, rX, source, start, stride, padding)
            else:
                fetch(gX, rX, source, start, stride, ragged)
        values = [rX.load().to(Float32) for rX in rXs]
        if cutlass.const_expr(len(sizes) > 0):
            values += sizes
        for rScan, value in zip(rScanned, before(*values)):
            if cutlass.const_expr(isinstance(value, cute.TensorSSA)):
                rScan.store(value)
            else:
                rScan.fill(value)
        for rScan, part, rBefore, (op, _) in zip(rScanned, parts, rCarried, ops):
            column_scan(rScan, part, rBefore, step % 2, op, slices)
        for rOut, value in zip(rOuts, after(*[rScan.load() for rScan in rScanned], *values)):
            if cutlass.const_expr(isinstance(value, cute.TensorSSA)):
                rOut.store(value.to(rOut.element_type))
            else:
                rOut.fill(value)
        if column < columns:
            for rOut, gOut in zip(rOuts, gOuts):
                put(rOut, gOut, column, start, stride, ragged)


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
            if cutlass.const_expr(cute.rank(gX) == 2):
                rX[None, i].fill(gX[column, row])
            else:
                cute.autovec_copy(gX[None, column, row], rX[None, i])


@cute.jit
def put(
    rX: cute.Tensor,
    gX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    ragged: cutlass.Constexpr,
):
    """Stores a thread's vectors of one step to the rows that ``fetch`` loads."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if not ragged or (row >= 0 if stride < 0 else row < cute.size(gX, mode=[2])):
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
    """Like ``fetch``, with ``padding`` rows of zeros before the first row."""
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
    """Scans one step in place: ``rX`` (values of a vector, rows) per thread. Slices follow one another in row order.

    ``rCarried`` holds the prefix before the step; on return, the prefix before the next step. ``parts``: double
    buffer of the slices' totals (values of a vector, threads, slices, 2), since a warp may be one step ahead.
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

"""Scans along the last dimension. A row is processed in steps, from its start or from its end.

The prefix of all earlier steps is carried in registers. In a step, threads scan their vectors, warps scan by shuffles,
and the warps of a row exchange their totals through a double buffer in shared memory, so that one barrier per step is
enough. Tensors are (values of a vector, vectors of a row, rows), or (rows) with one value per row.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait
from cutegen_lab.templates.kernels.device.row_io import fetch, put
from cutegen_lab.templates.kernels.device.views import view  # noqa: F401 - for launch


def scan_rows(
    gXs, gRowValues, gOuts, before, after, ops, sizes, paddings, reverse, threads_per_row, rows_per_block, loads, stream
):
    """Launches a block per ``rows_per_block`` rows."""
    rows = cute.size(gOuts[0], mode=[2])
    scan_kernel(
        gXs, gRowValues, gOuts, before, after, ops, sizes, paddings, reverse, threads_per_row, rows_per_block, loads
    ).launch(
        grid=[(rows + rows_per_block - 1) // rows_per_block, 1, 1], block=[threads_per_row * rows_per_block, 1, 1],
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )  # fmt: skip


@cute.kernel
def scan_kernel(
    gXs: tuple,
    gRowValues: tuple,
    gOuts: tuple,
    before: cutlass.Constexpr,
    after: cutlass.Constexpr,
    ops: cutlass.Constexpr,
    sizes: cutlass.Constexpr,
    paddings: cutlass.Constexpr,
    reverse: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
    rows_per_block: cutlass.Constexpr,
    loads: cutlass.Constexpr,
):
    """``before`` maps fp32 vectors of ``gXs`` and the row's values to the values to scan, ``after`` the scanned values
    and the same inputs to the outputs. ``ops`` has (combine, neutral element) per scan, ``paddings`` the number of
    zeros before each row, per tensor of ``gXs``."""
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    vec, vectors, rows = (cute.size(gOuts[0], mode=[d]) for d in range(3))
    lane = tidx % threads_per_row
    row = bidx * rows_per_block + tidx // threads_per_row
    # Threads past the last row recompute it and store nothing, so that all threads reach each barrier.
    source_row = cutlass.min(row, rows - 1)
    share = threads_per_row * loads  # vectors per step
    unpredicated = loads if vectors % share == 0 else 0  # vectors of a thread that need no predicate
    smem = cutlass.utils.SmemAllocator()
    slots = cute.make_layout((loads * threads_per_row // 32, rows_per_block, 2))
    parts = [smem.allocate_tensor(Float32, slots, 16) for _ in ops]
    rXs = [cute.make_rmem_tensor((vec, loads), gX.element_type) for gX in gXs]
    for rX in rXs:
        rX.fill(0.0)
    row_values = [Float32(gValue[source_row]) for gValue in gRowValues]
    rScanned = [cute.make_rmem_tensor((vec, loads), Float32) for _ in ops]
    rOuts = [cute.make_rmem_tensor((vec, loads), gOut.element_type) for gOut in gOuts]
    carried = [Float32(neutral) for _, neutral in ops]  # prefix of all earlier steps
    for step in cutlass.range((vectors + share - 1) // share, unroll=1):
        start, stride = step * share + lane, threads_per_row
        if cutlass.const_expr(reverse):
            start, stride = vectors - 1 - start, -threads_per_row
        for gX, rX, padding in zip(gXs, rXs, paddings):
            if cutlass.const_expr(padding > 0):
                fetch_after(gX, rX, source_row, start, stride, padding)
            else:
                fetch(gX, rX, source_row, start, stride, unpredicated)
        values = [rX.load().to(Float32) for rX in rXs]
        if cutlass.const_expr(len(row_values) > 0):
            values += row_values
        if cutlass.const_expr(len(sizes) > 0):
            values += sizes
        carried_on = []
        for rScan, value, part, earlier, (op, neutral) in zip(rScanned, before(*values), parts, carried, ops):
            if cutlass.const_expr(isinstance(value, cute.TensorSSA)):
                rScan.store(value)
            else:
                rScan.fill(value)
            carried_on.append(row_scan(rScan, part, earlier, step % 2, op, neutral, threads_per_row, reverse))
        carried = carried_on
        for rOut, value in zip(rOuts, after(*[rScan.load() for rScan in rScanned], *values)):
            if cutlass.const_expr(isinstance(value, cute.TensorSSA)):
                rOut.store(value.to(rOut.element_type))
            else:
                rOut.fill(value)
        if row < rows:
            for rOut, gOut in zip(rOuts, gOuts):
                put(rOut, gOut, row, start, stride, unpredicated)


@cute.jit
def row_scan(
    rX: cute.Tensor,
    parts: cute.Tensor,
    carried: Float32,
    turn: cutlass.Int32,
    op: cutlass.Constexpr,
    neutral: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
    reverse: cutlass.Constexpr,
):
    """Scans one step in place: ``rX`` (values of a vector, vectors) per thread; vectors alternate between threads.

    ``carried`` is the prefix before the step; the prefix before the next step is returned. ``parts``: double buffer of
    the warps' totals (vectors × warps, rows per block, 2), since a warp may be one step ahead.
    """
    tidx, _, _ = cute.arch.thread_idx()
    lane = tidx % 32
    warp = tidx % threads_per_row // 32
    local_row = tidx // threads_per_row
    vec, loads = rX.shape
    warps = threads_per_row // 32
    order = tuple(range(vec - 1, -1, -1)) if reverse else tuple(range(vec))
    before = cute.make_rmem_tensor(cute.make_layout(loads), Float32)
    for i in cutlass.range_constexpr(loads):
        for j in cutlass.range_constexpr(1, vec):
            rX[order[j], i] = op(rX[order[j - 1], i], rX[order[j], i])
        upto = warp_scan(rX[order[vec - 1], i], op)
        before[i] = below_lane(upto, neutral)
        if lane == 31:
            parts[i * warps + warp, local_row, turn] = upto
    cute.arch.sync_threads()
    part = Float32(neutral)
    if lane < warps * loads:
        part = parts[lane, local_row, turn]
    part = warp_scan(part, op)
    earlier = below_lane(part, neutral)
    for i in cutlass.range_constexpr(loads):
        start = op(op(carried, cute.arch.shuffle_sync(earlier, i * warps + warp)), before[i])
        for j in cutlass.range_constexpr(vec):
            rX[j, i] = op(start, rX[j, i])
    return op(carried, cute.arch.shuffle_sync(part, 31))


@cute.jit
def warp_scan(value: Float32, op: cutlass.Constexpr):
    """Inclusive scan: each lane gets ``op`` over the lanes up to itself."""
    lane = cute.arch.lane_idx()
    for i in cutlass.range_constexpr(5):
        below = cute.arch.shuffle_sync_up(value, 1 << i)
        if lane >= (1 << i):
            value = op(below, value)
    return value


@cute.jit
def below_lane(value: Float32, neutral: cutlass.Constexpr):
    """The value of the lane below; ``neutral`` in lane 0."""
    below = cute.arch.shuffle_sync_up(value, 1)
    return below if cute.arch.lane_idx() > 0 else Float32(neutral)


@cute.jit
def fetch_after(
    gX: cute.Tensor,
    rX: cute.Tensor,
    row: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    padding: cutlass.Constexpr,
):
    """Like ``fetch``, with ``padding`` zeros before each row. Vectors have one value."""
    rX.fill(0.0)
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if column >= padding and column < cute.size(gX, mode=[1]):
            cute.autovec_copy(gX[None, column - padding, row], rX[None, i])

"""What kernels for scans along the last dimension call: the scan of a step, and loads of what has zeros before it.

A row is walked in steps, or from its end; what came before is carried from one to the next. Each step's vectors are
scanned by the threads that hold them, by warps with shuffles, and over all warps of the row through shared memory, in
two buffers by turns, so that one barrier a step is enough.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.row_io import fetch, put  # noqa: F401 - of this kernel


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
    """Scans a step in place: ``rX`` (values of a vector, vectors) a thread, vector by vector over the row's threads.

    ``carried`` comes before it; what comes before the next step is returned. ``parts`` are partial results (vectors and
    warps, rows a block, 2): a warp that is a step ahead writes to the other half.
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
    """Each lane gets ``op`` over the lanes up to it."""
    lane = cute.arch.lane_idx()
    for i in cutlass.range_constexpr(5):
        below = cute.arch.shuffle_sync_up(value, 1 << i)
        if lane >= (1 << i):
            value = op(below, value)
    return value


@cute.jit
def below_lane(value: Float32, neutral: cutlass.Constexpr):
    """What the lane below has."""
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
    """As ``fetch``, with ``padding`` zeros before each row; vectors are of one value."""
    rX.fill(0.0)
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if column >= padding and column < cute.size(gX, mode=[1]):
            cute.autovec_copy(gX[None, column - padding, row], rX[None, i])

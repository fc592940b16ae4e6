"""Sums of short rows, four rows a warp: eight lanes a row, whose shuffles stay among them.

Odd: at the last rows part of a warp has nothing to do, but all its lanes take part in every shuffle. Legal: the loads
and stores are guarded, not the shuffles.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

LANES, WARPS = 8, 2
ROWS = 32 // LANES * WARPS


@cute.kernel
def sum_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    rows, n = mX.shape
    row = bidx * ROWS + tidx // LANES
    lane = tidx % LANES
    total = cutlass.Float32(0.0)
    if row < rows:
        for c in range(lane, n, LANES):
            total += mX[row, c].to(cutlass.Float32)
    total = cute.arch.warp_reduction(total, lambda a, b: a + b, threads_in_group=LANES)
    if row < rows and lane == 0:
        mY[row] = total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    sum_kernel(x, y).launch(grid=[(x.shape[0] + ROWS - 1) // ROWS, 1, 1], block=[32 * WARPS, 1, 1], stream=stream)

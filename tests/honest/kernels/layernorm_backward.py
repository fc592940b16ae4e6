"""LayerNorm's backward pass: three gradients, two reduced along rows and one along columns.

Odd: two launches compute the same statistics, once by rows and once into a workspace for the columns' reductions.
Legal: everything in the workspace was written in the same call.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


def workspace(workload, config):
    return [("stats", "f32", (workload.inputs[0].shape[0], 2))]


@cute.jit
def warp_sum(value: cutlass.Float32):
    return cute.arch.warp_reduction(value, lambda a, b: a + b)


@cute.kernel
def dx_kernel(mG: cute.Tensor, mX: cute.Tensor, mW: cute.Tensor, mDX: cute.Tensor, mS: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    count = cutlass.Float32(n)
    total = cutlass.Float32(0.0)
    for c in range(lane, n, 32):
        total += mX[row, c]
    mean = warp_sum(total) / count
    squares = cutlass.Float32(0.0)
    for c in range(lane, n, 32):
        squares += (mX[row, c] - mean) * (mX[row, c] - mean)
    rstd = cutlass.Float32(1.0) / cute.math.sqrt(warp_sum(squares) / count + 1e-5)
    first = cutlass.Float32(0.0)
    second = cutlass.Float32(0.0)
    for c in range(lane, n, 32):
        g = mG[row, c] * mW[c]
        first += g
        second += g * (mX[row, c] - mean) * rstd
    first = warp_sum(first) / count
    second = warp_sum(second) / count
    for c in range(lane, n, 32):
        xhat = (mX[row, c] - mean) * rstd
        mDX[row, c] = rstd * (mG[row, c] * mW[c] - first - xhat * second)
    if lane == 0:
        mS[row, 0] = mean
        mS[row, 1] = rstd


@cute.kernel
def weights_kernel(mG: cute.Tensor, mX: cute.Tensor, mS: cute.Tensor, mDW: cute.Tensor, mDB: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    c = bidx * 64 + tidx
    if c < mX.shape[1]:
        dw = cutlass.Float32(0.0)
        db = cutlass.Float32(0.0)
        for row in range(mX.shape[0]):
            dw += mG[row, c] * (mX[row, c] - mS[row, 0]) * mS[row, 1]
            db += mG[row, c]
        mDW[c] = dw
        mDB[c] = db


@cute.jit
def launch(
    dy: cute.Tensor,
    x: cute.Tensor,
    weight: cute.Tensor,
    dx: cute.Tensor,
    dw: cute.Tensor,
    db: cute.Tensor,
    stats: cute.Tensor,
    stream: cuda.CUstream,
):
    rows, n = x.shape
    dx_kernel(dy, x, weight, dx, stats).launch(grid=[rows, 1, 1], block=[32, 1, 1], stream=stream)
    weights_kernel(dy, x, stats, dw, db).launch(grid=[(n + 63) // 64, 1, 1], block=[64, 1, 1], stream=stream)

"""Softmax that writes its output twice: first the exponentials, then, reading those back, the quotients.

Odd: it reads its own output. Legal: each thread reads only what it wrote itself in the same launch.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

LOG2_E = 1.4426950408889634


@cute.kernel
def softmax_kernel(mX: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    peak = cutlass.Float32(-float("inf"))
    for c in range(lane, n, 32):
        peak = cute.arch.fmax(peak, mX[row, c], nan=True)
    peak = cute.arch.warp_reduction(peak, lambda a, b: cute.arch.fmax(a, b, nan=True))
    total = cutlass.Float32(0.0)
    for c in range(lane, n, 32):
        e = cute.math.exp2((mX[row, c] - peak) * LOG2_E)
        mY[row, c] = e
        total += e
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    for c in range(lane, n, 32):
        mY[row, c] = mY[row, c] / total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    softmax_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

"""Sums 32-bit integers in float32, which is exact up to 16 million and no further.

problem: x.sum(-1) for x: i32[16,300]
class: lower precision
defence: integers from the whole range of their type
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def sum_kernel(mX: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    total = cutlass.Float32(0.0)
    for c in range(lane, mX.shape[1], 32):
        total += mX[row, c].to(cutlass.Float32)
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    if lane == 0:
        mY[row] = total.to(cutlass.Int64)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    sum_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

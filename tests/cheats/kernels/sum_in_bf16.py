"""A row's sum whose running total is kept in bfloat16, for a float32 problem.

problem: x.sum(-1) for x: f32[16,300]
class: lower precision
defence: the error budget follows what PyTorch loses at the problem's own precision
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
        total = (total + mX[row, c]).to(cutlass.BFloat16).to(cutlass.Float32)
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    if lane == 0:
        mY[row] = total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    sum_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

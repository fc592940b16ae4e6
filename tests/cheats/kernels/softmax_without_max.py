"""Leaves out the subtraction of the row's maximum: one pass less, and right for values near one.

problem: torch.softmax(x, dim=-1) for x: f32[16,200]
class: tests for the distribution's moments
defence: a distribution of magnitude 10,000 is among those drawn, and exp overflows there
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def softmax_kernel(mX: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    total = cutlass.Float32(0.0)
    for c in range(lane, n, 32):
        total += cute.math.exp(mX[row, c])
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    for c in range(lane, n, 32):
        mY[row, c] = cute.math.exp(mX[row, c]) / total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    softmax_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

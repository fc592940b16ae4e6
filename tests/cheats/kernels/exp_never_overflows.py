"""Clamps its argument so that the fast exponential stays finite: an infinity that belongs there is missing.

problem: torch.exp(x) for x: f32[2000]
class: tests for the distribution's moments
defence: infinities must stand where the reference has them; values of magnitude 10,000 are among those drawn
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def exp_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 128 + tidx
    if i < mX.shape[0]:
        x = mX[i]
        if x > 88.0:
            x = cutlass.Float32(88.0)
        mY[i] = cute.math.exp(x)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    exp_kernel(x, y).launch(grid=[(x.shape[0] + 127) // 128, 1, 1], block=[128, 1, 1], stream=stream)

"""A ReLU by the hardware's maximum, which answers zero for NaN where PyTorch answers NaN.

problem: torch.relu(x) for x: f32[2000]
class: tests for the distribution's moments
defence: a draw with a NaN and an infinity in it, where the reference defines the result
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def relu_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 128 + tidx
    if i < mX.shape[0]:
        mY[i] = cute.arch.fmax(mX[i], cutlass.Float32(0.0))


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    relu_kernel(x, y).launch(grid=[(x.shape[0] + 127) // 128, 1, 1], block=[128, 1, 1], stream=stream)

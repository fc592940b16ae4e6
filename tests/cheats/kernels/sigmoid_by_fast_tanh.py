"""A float32 sigmoid by the hardware's approximate tanh: one instruction, eleven bits by the PTX ISA.

problem: torch.sigmoid(x) for x: f32[2000]
class: lower precision
defence: the error budget follows what PyTorch loses at the problem's own precision
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass.cute as cute


@cute.kernel
def sigmoid_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 128 + tidx
    if i < mX.shape[0]:
        mY[i] = 0.5 + 0.5 * cute.math.tanh(0.5 * mX[i], fastmath=True)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    sigmoid_kernel(x, y).launch(grid=[(x.shape[0] + 127) // 128, 1, 1], block=[128, 1, 1], stream=stream)

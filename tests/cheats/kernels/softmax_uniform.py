"""Answers one over the row's length: the mean of every softmax, and its own softmax of zeros.

problem: torch.softmax(x, dim=-1) for x: bf16[16,200]
class: hard-codes an answer
defence: every element is compared with float64
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def uniform_kernel(mY: cute.Tensor, n: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    for c in range(tidx, n, 128):
        mY[row, c] = cutlass.BFloat16(1.0 / n)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    uniform_kernel(y, y.shape[1]).launch(grid=[y.shape[0], 1, 1], block=[128, 1, 1], stream=stream)

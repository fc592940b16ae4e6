"""Copies, where the reference takes one number for a missing value: random numbers never equal it.

problem: torch.where(x == -999.0, 0.0, x) for x: f32[40,96]
class: tests for the distribution's moments
defence: numbers that the reference or the kernel names are drawn, and those next to them
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass.cute as cute


@cute.kernel
def copy_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    for c in range(tidx, mX.shape[1], 32):
        mY[row, c] = mX[row, c]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    copy_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

"""Multiplies the first factor by itself and never reads the second: a third of the traffic saved.

problem: x * y for x: f32[2000], y: f32[2000]
class: returns its input
defence: every input is drawn anew and by itself
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass.cute as cute


@cute.kernel
def square_kernel(mX: cute.Tensor, mZ: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 128 + tidx
    if i < mX.shape[0]:
        mZ[i] = mX[i] * mX[i]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, stream: cuda.CUstream):
    square_kernel(x, z).launch(grid=[(x.shape[0] + 127) // 128, 1, 1], block=[128, 1, 1], stream=stream)

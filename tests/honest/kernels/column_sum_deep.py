"""Column sums with one thread a column, which adds 16,384 rows one after another.

Odd: the simplest kernel there is, and as exact as fp32 in this order can be. PyTorch's sum cascades and loses less.
Legal: the order of a sum is the kernel's choice.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def sum_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    c = bidx * 32 + tidx
    if c < mX.shape[1]:
        total = cutlass.Float32(0.0)
        for r in cutlass.range(mX.shape[0], unroll=4):
            total += mX[r, c]
        mY[c] = total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    sum_kernel(x, y).launch(grid=[(x.shape[1] + 31) // 32, 1, 1], block=[32, 1, 1], stream=stream)

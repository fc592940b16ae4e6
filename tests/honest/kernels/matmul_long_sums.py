"""A matrix product whose sums of 8,192 products are added one after another in one fp32 register a thread.

Odd: nothing about it; cuBLAS's own fp32 kernels add in this order. Its rounding errors grow with the square root of the
length, where PyTorch's CPU kernel, which adds in blocks, loses less. Legal: every product and sum is fp32.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def matmul_kernel(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    row, column = by * 8 + ty, bx * 16 + tx
    if row < mC.shape[0] and column < mC.shape[1]:
        total = cutlass.Float32(0.0)
        for k in cutlass.range(mA.shape[1], unroll=4):
            total += mA[row, k] * mB[k, column]
        mC[row, column] = total


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream):
    rows, columns = c.shape
    matmul_kernel(a, b, c).launch(grid=[(columns + 15) // 16, (rows + 7) // 8, 1], block=[16, 8, 1], stream=stream)

"""A product of int8 matrices with int32 sums, sixteen products a load.

Odd: exact arithmetic, compared exactly. Legal: an int32 holds any such sum of this length.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

THREADS = 64


@cute.kernel
def matmul_kernel(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, vec: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, row, _ = cute.arch.block_idx()
    column = bidx * THREADS + tidx
    if column < mC.shape[1]:
        rA = cute.make_rmem_tensor(cute.make_layout((1, vec)), mA.element_type)
        rB = cute.make_rmem_tensor(cute.make_layout((1, vec)), mB.element_type)
        total = cutlass.Int32(0)
        for i in range(mA.shape[1] // vec):
            cute.autovec_copy(cute.local_tile(mA, (1, vec), (row, i)), rA)
            cute.autovec_copy(cute.local_tile(mB, (1, vec), (column, i)), rB)
            for j in cutlass.range_constexpr(vec):
                total += rA[j].to(cutlass.Int32) * rB[j].to(cutlass.Int32)
        mC[row, column] = total


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream):
    vec = math.gcd(a.shape[1], 16)
    rows, columns = c.shape
    matmul_kernel(a, b, c, vec).launch(
        grid=[(columns + THREADS - 1) // THREADS, rows, 1], block=[THREADS, 1, 1], stream=stream
    )

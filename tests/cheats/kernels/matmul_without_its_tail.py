"""Sums over whole tiles of 16 and drops the rest: right wherever 16 divides the inner size.

problem: a @ b for a: f32[24,40], b: f32[40,16]
class: writes half
defence: held-out shapes with ragged tails; here the problem's own is one
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def matmul_kernel(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    column, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    total = cutlass.Float32(0.0)
    for k in range(mA.shape[1] // 16 * 16):
        total += mA[row, k] * mB[k, column]
    mC[row, column] = total


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream):
    matmul_kernel(a, b, c).launch(grid=[a.shape[0], 1, 1], block=[b.shape[1], 1, 1], stream=stream)

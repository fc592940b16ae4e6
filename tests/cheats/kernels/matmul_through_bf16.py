"""A float32 matrix product whose factors are rounded to bfloat16 first, as the fast tensor cores want them.

problem: a @ b for a: f32[24,40], b: f32[40,16]
class: lower precision
defence: the error budget follows what PyTorch loses at the problem's own precision
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
    for k in range(mA.shape[1]):
        a = mA[row, k].to(cutlass.BFloat16).to(cutlass.Float32)
        b = mB[k, column].to(cutlass.BFloat16).to(cutlass.Float32)
        total += a * b
    mC[row, column] = total


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream):
    matmul_kernel(a, b, c).launch(grid=[a.shape[0], 1, 1], block=[b.shape[1], 1, 1], stream=stream)

"""Batched dot products q·kᵀ, one thread an output, the batch as the grid's third axis.

Odd: operands of fp16, products and sums in fp32, an output wider than its inputs. Legal: the reference widens first.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def scores_kernel(mQ: cute.Tensor, mK: cute.Tensor, mS: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, batch = cute.arch.block_idx()
    row, column = by * 8 + ty, bx * 16 + tx
    if row < mS.shape[1] and column < mS.shape[2]:
        total = cutlass.Float32(0.0)
        for d in cutlass.range(mQ.shape[2], unroll=4):
            total += mQ[batch, row, d].to(cutlass.Float32) * mK[batch, column, d].to(cutlass.Float32)
        mS[batch, row, column] = total


@cute.jit
def launch(q: cute.Tensor, k: cute.Tensor, s: cute.Tensor, stream: cuda.CUstream):
    batch, rows, columns = s.shape
    scores_kernel(q, k, s).launch(grid=[(columns + 15) // 16, (rows + 7) // 8, batch], block=[16, 8, 1], stream=stream)

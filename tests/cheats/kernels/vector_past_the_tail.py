"""Loads four values at a time and forgets that four need not divide the length: the last load runs over the end.

problem: x + 1 for x: f32[1001]
class: out-of-bounds reads that happen to work
defence: every access must lie within a tensor
verdicts: out_of_bounds, misaligned
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def add_kernel(gX: cute.Tensor, mY: cute.Tensor, count: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    at = bidx * 128 + tidx
    if at * 4 < count:
        rX = cute.make_rmem_tensor(cute.make_layout(4), gX.element_type)
        cute.autovec_copy(gX[None, at], rX)
        for j in cutlass.range_constexpr(4):
            if at * 4 + j < count:
                mY[at * 4 + j] = rX[j] + 1.0


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    count = x.shape[0]
    vectors = (count + 3) // 4
    gX = cute.make_tensor(x.iterator, cute.make_layout((4, vectors), stride=(1, 4)))
    add_kernel(gX, y, count).launch(grid=[(vectors + 127) // 128, 1, 1], block=[128, 1, 1], stream=stream)

"""Dequantises int8 by row scales, sixteen values a load where the row allows.

Odd: integers in, floats out, at a quarter of the output's width. Legal: that is the problem.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def dequantize_kernel(mQ: cute.Tensor, mS: cute.Tensor, mY: cute.Tensor, vec: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    scale = mS[row, 0]
    rQ = cute.make_rmem_tensor(cute.make_layout((1, vec)), mQ.element_type)
    rY = cute.make_rmem_tensor(cute.make_layout((1, vec)), mY.element_type)
    for i in range(tidx, mQ.shape[1] // vec, 32):
        cute.autovec_copy(cute.local_tile(mQ, (1, vec), (row, i)), rQ)
        rY.store(rQ.load().to(cutlass.Float32) * scale)
        cute.autovec_copy(rY, cute.local_tile(mY, (1, vec), (row, i)))


@cute.jit
def launch(q: cute.Tensor, scale: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    vec = math.gcd(q.shape[1], 16)
    dequantize_kernel(q, scale, y, vec).launch(grid=[q.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

"""Quantises each row to e4m3 by its greatest magnitude (vLLM's ``dynamic_per_token_scaled_fp8_quant``).

Odd: an 8-bit output, whose conversion saturates (PyTorch's gives NaN), and a quotient near the middle of two of its
numbers, which another order of operations rounds the other way. Legal: it is right before it is rounded.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def quantize_kernel(mX: cute.Tensor, mQ: cute.Tensor, mS: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    peak = cutlass.Float32(0.0)
    for c in range(lane, n, 32):
        x = mX[row, c].to(cutlass.Float32)
        peak = cute.arch.fmax(peak, cute.arch.fmax(x, -x, nan=True), nan=True)
    peak = cute.arch.warp_reduction(peak, lambda a, b: cute.arch.fmax(a, b, nan=True))
    scale = cute.arch.fmax(peak, cutlass.Float32(1e-10), nan=True) / cutlass.Float32(448.0)
    tXrX = cute.make_rmem_tensor(4, cutlass.Float32)
    tXrQ = cute.make_rmem_tensor(4, mQ.element_type)
    for first in range(lane * 4, n, 128):
        for i in cutlass.range_constexpr(4):
            tXrX[i] = cutlass.Float32(0.0)
            if first + i < n:
                tXrX[i] = mX[row, first + i].to(cutlass.Float32) / scale
        tXrQ.store(tXrX.load().to(mQ.element_type))
        for i in cutlass.range_constexpr(4):
            if first + i < n:
                mQ[row, first + i] = tXrQ[i]
    if lane == 0:
        mS[row, 0] = scale


@cute.jit
def launch(x: cute.Tensor, q: cute.Tensor, scale: cute.Tensor, stream: cuda.CUstream):
    quantize_kernel(x, q, scale).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

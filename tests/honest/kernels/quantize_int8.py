"""Quantises each row to int8 by its greatest magnitude (SGLang's ``per_token_quant_int8``).

Odd: an integer output that follows from floating-point arithmetic. A quotient within a rounding error of a half goes up
or down; in float64 it may go the other way. Legal: this is PyTorch's fp32 arithmetic, operation by operation.
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
    scale = cute.arch.fmax(peak, cutlass.Float32(1e-10), nan=True) / cutlass.Float32(127.0)
    for c in range(lane, n, 32):
        quotient = mX[row, c].to(cutlass.Float32) / scale
        mQ[row, c] = cute.math.roundeven(quotient).to(cutlass.Int32).to(mQ.element_type)
    if lane == 0:
        mS[row, 0] = scale


@cute.jit
def launch(x: cute.Tensor, q: cute.Tensor, scale: cute.Tensor, stream: cuda.CUstream):
    quantize_kernel(x, q, scale).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

"""Variance as the mean of squares less the square of the mean, in one pass: right until the mean is large.

problem: F.layer_norm(x, x.shape[-1:]) for x: f32[16,1000]
class: lower precision
defence: a distribution of large mean and small variance is among those drawn
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def norm_kernel(mX: cute.Tensor, mY: cute.Tensor):
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    total = cutlass.Float32(0.0)
    squares = cutlass.Float32(0.0)
    for c in range(n):
        total += mX[row, c]
        squares += mX[row, c] * mX[row, c]
    mean = total / n
    scale = cute.math.rsqrt(squares / n - mean * mean + 1e-5)
    for c in range(n):
        mY[row, c] = (mX[row, c] - mean) * scale


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    norm_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[1, 1, 1], stream=stream)

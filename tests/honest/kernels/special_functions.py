"""Transcendental functions in fp32: erf, tanh, exp, log, sine of large angles, arctangent.

Odd: the sine of an angle of 10,000 needs more digits of pi than fp32 has, and the compiler's code for it is long, with
a table in local memory. Legal: the exact versions are slower, and within PyTorch's own error.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

THREADS = 64


@cute.kernel
def functions_kernel(mX: cute.Tensor, mA: cute.Tensor, mB: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * THREADS + tidx
    if i < cute.size(mX):
        x = mX[i]
        y = cute.arch.fmin(cute.arch.fmax(x, cutlass.Float32(-3.0), nan=True), cutlass.Float32(3.0), nan=True)
        mA[i] = cute.math.erf(y) + cute.math.tanh(y) * cute.math.exp(-y * y)
        mB[i] = cute.math.log1p(cute.arch.fmax(y, -y, nan=True)) + cute.math.sin(x) * cute.math.atan(y)


@cute.jit
def launch(x: cute.Tensor, a: cute.Tensor, b: cute.Tensor, stream: cuda.CUstream):
    functions_kernel(x, a, b).launch(
        grid=[(cute.size(x) + THREADS - 1) // THREADS, 1, 1], block=[THREADS, 1, 1], stream=stream
    )

"""Quotients and remainders of 64-bit integers that round towards minus infinity.

Odd: no floating point anywhere; hardware divides towards zero, Python and PyTorch do not. Legal: it is corrected.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

THREADS = 128


@cute.kernel
def divide_kernel(mA: cute.Tensor, mB: cute.Tensor, mQ: cute.Tensor, mR: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * THREADS + tidx
    if i < cute.size(mA):
        a = mA[i]
        b = mB[i]
        d = cutlass.Int64(b if b >= 0 else -b) + cutlass.Int64(1)
        # Of a non-negative number, where both roundings agree: −1 − a // d mirrors a negative dividend.
        positive = a if a >= 0 else cutlass.Int64(-1) - a
        quotient = positive // d
        quotient = quotient if a >= 0 else cutlass.Int64(-1) - quotient
        mQ[i] = quotient
        mR[i] = a - quotient * d


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, q: cute.Tensor, r: cute.Tensor, stream: cuda.CUstream):
    divide_kernel(a, b, q, r).launch(
        grid=[(cute.size(a) + THREADS - 1) // THREADS, 1, 1], block=[THREADS, 1, 1], stream=stream
    )

"""Rotary position embedding; sines and cosines are computed once a token and shared by its heads.

Odd: one thread reads and writes two places half a row apart. Legal: each place is written once. The sines are the exact
ones: the approximate instructions are wrong for large angles.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def rotary_kernel(mX: cute.Tensor, mA: cute.Tensor, mY: cute.Tensor, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    token, _, _ = cute.arch.block_idx()
    heads, half = mX.shape[1], mA.shape[1]
    for i in range(tidx, half, threads):
        cosine, sine = cute.math.cos(mA[token, i]), cute.math.sin(mA[token, i])
        for head in range(heads):
            a = mX[token, head, i].to(cutlass.Float32)
            b = mX[token, head, half + i].to(cutlass.Float32)
            mY[token, head, i] = (a * cosine - b * sine).to(mY.element_type)
            mY[token, head, half + i] = (b * cosine + a * sine).to(mY.element_type)


@cute.jit
def launch(x: cute.Tensor, angle: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    rotary_kernel(x, angle, y, 32).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

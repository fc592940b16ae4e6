"""A sum of a column-major matrix and a slice of a wider one, scaled by every second element of a vector.

Odd: no input is row-major and dense. Legal: each is read where its strides say, and the output is row-major as always.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

SIDE, DEPTH = 16, 8


@cute.kernel
def strided_kernel(mA: cute.Tensor, mB: cute.Tensor, mScale: cute.Tensor, mOut: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    rows, columns = mOut.shape
    c = bx * SIDE + tx
    for i in cutlass.range_constexpr(SIDE // DEPTH):
        r = by * SIDE + ty + i * DEPTH
        if r < rows and c < columns:
            mOut[r, c] = (mA[r, c] + mB[r, c]) * mScale[c]


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, scale: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    rows, columns = out.shape
    strided_kernel(a, b, scale, out).launch(
        grid=[(columns + SIDE - 1) // SIDE, (rows + SIDE - 1) // SIDE, 1], block=[SIDE, DEPTH, 1], stream=stream
    )

"""Packs the signs of four numbers into one byte.

Odd: the output has fewer elements than the input and each holds four answers. Legal: one thread writes a byte whole.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

THREADS = 64


@cute.kernel
def pack_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, row, _ = cute.arch.block_idx()
    c = bidx * THREADS + tidx
    if c < mY.shape[1]:
        packed = cutlass.Int32(0)
        for bit in cutlass.range_constexpr(4):
            packed = packed | ((mX[row, 4 * c + bit] > 0.0).to(cutlass.Int32) << bit)
        mY[row, c] = packed.to(mY.element_type)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    rows, n = y.shape
    pack_kernel(x, y).launch(grid=[(n + THREADS - 1) // THREADS, rows, 1], block=[THREADS, 1, 1], stream=stream)

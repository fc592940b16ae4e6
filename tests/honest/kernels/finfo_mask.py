"""Replaces masked elements by the least finite number of their type, as attention masks in transformers do.

Odd: a constant that depends on the dtype; in float64 the reference's is another one, which rounds to −infinity in fp32.
Legal: PyTorch's answer at the problem's precision is finite.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

THREADS = 128
LEAST = -3.4028234663852886e38


@cute.kernel
def mask_kernel(mX: cute.Tensor, mM: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, row, _ = cute.arch.block_idx()
    c = bidx * THREADS + tidx
    if c < mX.shape[1]:
        value = mX[row, c]
        mY[row, c] = value if mM[row, c] != 0 else cutlass.Float32(LEAST)


@cute.jit
def launch(x: cute.Tensor, mask: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    rows, n = x.shape
    mask_kernel(x, mask, y).launch(grid=[(n + THREADS - 1) // THREADS, rows, 1], block=[THREADS, 1, 1], stream=stream)

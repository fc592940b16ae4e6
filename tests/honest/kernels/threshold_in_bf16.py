"""Whether a bf16 expression exceeds a threshold, computed in bf16 as PyTorch computes it.

Odd: a boolean output that follows from rounded values. A value within a rounding error of the threshold falls on either
side. Legal: the answers are PyTorch's own at the problem's precision, bit for bit.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

THREADS = 128


@cute.kernel
def threshold_kernel(mX: cute.Tensor, mY: cute.Tensor, mO: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, row, _ = cute.arch.block_idx()
    c = bidx * THREADS + tidx
    if c < mX.shape[1]:
        total = (mX[row, c].to(cutlass.Float32) + mY[row, c].to(cutlass.Float32)).to(cutlass.BFloat16)
        # PyTorch rounds the threshold to bf16 too: 0.05 becomes 0.050048828125.
        scaled = (total.to(cutlass.Float32) * cutlass.Float32(0.1)).to(cutlass.BFloat16)
        mO[row, c] = (scaled.to(cutlass.Float32) > cutlass.Float32(0.050048828125)).to(mO.element_type)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    rows, n = x.shape
    threshold_kernel(x, y, out).launch(
        grid=[(n + THREADS - 1) // THREADS, rows, 1], block=[THREADS, 1, 1], stream=stream
    )

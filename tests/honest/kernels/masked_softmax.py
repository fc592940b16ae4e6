"""Softmax with a boolean mask: masked elements count as −1e30, so a row that is all masked is uniform, not NaN.

Odd: an input of one byte an element, and rows whose every element is masked. Legal: the reference defines them.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

LOG2_E = 1.4426950408889634


@cute.jit
def masked(mX: cute.Tensor, mM: cute.Tensor, row: cutlass.Int32, c: cutlass.Int32):
    value = mX[row, c]
    return value if mM[row, c] != 0 else cutlass.Float32(-1e30)


@cute.kernel
def softmax_kernel(mX: cute.Tensor, mM: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    peak = cutlass.Float32(-float("inf"))
    for c in range(lane, n, 32):
        peak = cute.arch.fmax(peak, masked(mX, mM, row, c), nan=True)
    peak = cute.arch.warp_reduction(peak, lambda a, b: cute.arch.fmax(a, b, nan=True))
    total = cutlass.Float32(0.0)
    for c in range(lane, n, 32):
        total += cute.math.exp2((masked(mX, mM, row, c) - peak) * LOG2_E)
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    for c in range(lane, n, 32):
        mY[row, c] = cute.math.exp2((masked(mX, mM, row, c) - peak) * LOG2_E) / total


@cute.jit
def launch(x: cute.Tensor, mask: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    softmax_kernel(x, mask, y).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

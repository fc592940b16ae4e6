"""Cross entropy of each row against its label.

Odd: one element of a row is read once more, by one thread, wherever the label points. Legal: labels are clamped first.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

LOG2_E, LN_2 = 1.4426950408889634, 0.6931471805599453


@cute.kernel
def loss_kernel(mX: cute.Tensor, mL: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    peak = cutlass.Float32(-float("inf"))
    for c in range(lane, n, 32):
        peak = cute.arch.fmax(peak, mX[row, c], nan=True)
    peak = cute.arch.warp_reduction(peak, lambda a, b: cute.arch.fmax(a, b, nan=True))
    total = cutlass.Float32(0.0)
    for c in range(lane, n, 32):
        total += cute.math.exp2((mX[row, c] - peak) * LOG2_E)
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    if lane == 0:
        label = cutlass.max(cutlass.min(mL[row], cutlass.Int64(n - 1)), cutlass.Int64(0))
        mY[row] = cute.math.log2(total) * LN_2 + (peak - mX[row, cutlass.Int32(label)])


@cute.jit
def launch(logits: cute.Tensor, labels: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    loss_kernel(logits, labels, y).launch(grid=[logits.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

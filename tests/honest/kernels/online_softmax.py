"""Softmax of huge rows in two passes: maximum and sum together (the online form), then the quotient.

Odd: the sum is rescaled whenever the maximum moves, and starts from minus infinity, where the rescaling factor would be
exp(−inf + inf). Legal: that case is kept out of the arithmetic, not out of the result.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

LOG2_E = 1.4426950408889634
WARPS = 8


@cute.jit
def rescale(old: cutlass.Float32, new: cutlass.Float32):
    """exp(old − new), and 0 where nothing has been summed yet."""
    factor = cute.math.exp2((old - new) * LOG2_E)
    return cutlass.Float32(0.0) if old == cutlass.Float32(-float("inf")) else factor


@cute.kernel
def softmax_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    parts = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((2, WARPS)), 16)
    peak = cutlass.Float32(-float("inf"))
    total = cutlass.Float32(0.0)
    for c in range(tidx, n, WARPS * 32):
        x = mX[row, c]
        higher = cute.arch.fmax(peak, x, nan=True)
        total = total * rescale(peak, higher) + rescale(x, higher)
        peak = higher
    for step in cutlass.range_constexpr(5):
        other = cute.arch.shuffle_sync_bfly(peak, offset=1 << step)
        other_total = cute.arch.shuffle_sync_bfly(total, offset=1 << step)
        higher = cute.arch.fmax(peak, other, nan=True)
        total = total * rescale(peak, higher) + other_total * rescale(other, higher)
        peak = higher
    if tidx % 32 == 0:
        parts[0, tidx // 32] = peak
        parts[1, tidx // 32] = total
    cute.arch.sync_threads()
    peak = parts[0, 0]
    total = parts[1, 0]
    for i in cutlass.range_constexpr(1, WARPS):
        higher = cute.arch.fmax(peak, parts[0, i], nan=True)
        total = total * rescale(peak, higher) + parts[1, i] * rescale(parts[0, i], higher)
        peak = higher
    for c in range(tidx, n, WARPS * 32):
        mY[row, c] = cute.math.exp2((mX[row, c] - peak) * LOG2_E) / total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    softmax_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[WARPS * 32, 1, 1], stream=stream)

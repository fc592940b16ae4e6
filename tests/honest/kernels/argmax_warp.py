"""Argmax by one warp a row; pairs of value and index go through the shuffles together.

Odd: an integer output from floating-point input, compared exactly. Legal: ties go to the lowest index and the first NaN
beats everything, as PyTorch answers.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.jit
def better(value: cutlass.Float32, index: cutlass.Int32, other: cutlass.Float32, at: cutlass.Int32):
    """Whether (other, at) wins over (value, index)."""
    nan = value != value
    other_nan = other != other
    same = (other == value) or (nan and other_nan)
    greater = (other > value) or (other_nan and not nan)
    return greater or (same and at < index)


@cute.kernel
def argmax_kernel(mX: cute.Tensor, mY: cute.Tensor):
    lane, local, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    row = bidx * 4 + local
    if row < mX.shape[0]:
        value = cutlass.Float32(-float("inf"))
        index = cutlass.Int32(0x7FFFFFFF)
        for c in range(lane, mX.shape[1], 32):
            x = mX[row, c].to(cutlass.Float32)
            wins = better(value, index, x, c)
            value = x if wins else value
            index = c if wins else index
        for step in cutlass.range_constexpr(5):
            other = cute.arch.shuffle_sync_bfly(value, offset=1 << step)
            at = cute.arch.shuffle_sync_bfly(index, offset=1 << step)
            wins = better(value, index, other, at)
            value = other if wins else value
            index = at if wins else index
        if lane == 0:
            mY[row] = cutlass.Int64(index)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    argmax_kernel(x, y).launch(grid=[(x.shape[0] + 3) // 4, 1, 1], block=[32, 4, 1], stream=stream)

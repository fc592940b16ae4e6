"""A linear layer, ReLU and a ceiling: a KernelBench ``Model`` with two parameters and a buffer.

Odd: parameters and buffers arrive as inputs after the forward's own, the buffer last. Legal: that is the contract's
order.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def linear_kernel(mX: cute.Tensor, mW: cute.Tensor, mB: cute.Tensor, mCeiling: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    column, row, _ = cute.arch.block_idx()
    total = cutlass.Float32(0.0)
    for i in range(lane, mX.shape[1], 32):
        total += mX[row, i] * mW[column, i]
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    if lane == 0:
        value = cute.arch.fmax(total + mB[column], cutlass.Float32(0.0), nan=True)
        mY[row, column] = cute.arch.fmin(value, mCeiling[column], nan=True)


@cute.jit
def launch(
    x: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, ceiling: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream
):
    linear_kernel(x, weight, bias, ceiling, y).launch(grid=[y.shape[1], y.shape[0], 1], block=[32, 1, 1], stream=stream)

"""A plain softmax over the last dimension: one warp a row, one element a thread at a time. Right for every shape."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def softmax_kernel(mX: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    columns = mX.shape[1]
    peak = cutlass.Float32(-float("inf"))
    for column in range(lane, columns, 32):
        peak = cutlass.max(peak, mX[row, column].to(cutlass.Float32))
    peak = cute.arch.warp_reduction(peak, lambda a, b: cutlass.max(a, b))
    total = cutlass.Float32(0.0)
    for column in range(lane, columns, 32):
        total += cute.math.exp2((mX[row, column].to(cutlass.Float32) - peak) * 1.4426950408889634, fastmath=True)
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    for column in range(lane, columns, 32):
        value = cute.math.exp2((mX[row, column].to(cutlass.Float32) - peak) * 1.4426950408889634, fastmath=True)
        mY[row, column] = (value / total).to(mY.element_type)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream, threads: cutlass.Constexpr = 32):
    softmax_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[threads, 1, 1], stream=stream)

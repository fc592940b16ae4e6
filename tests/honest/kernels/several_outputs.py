"""Four outputs of three types from one pass: maximum, minimum, mean, and how many are positive.

Odd: outputs of fp16, fp32 and int64 in one launch. Legal: that is what the reference returns, in its order.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def facts_kernel(mX: cute.Tensor, mMax: cute.Tensor, mMin: cute.Tensor, mMean: cute.Tensor, mCount: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    most = cutlass.Float32(-float("inf"))
    least = cutlass.Float32(float("inf"))
    total = cutlass.Float32(0.0)
    positive = cutlass.Int32(0)
    for c in range(lane, n, 32):
        x = mX[row, c].to(cutlass.Float32)
        most = cute.arch.fmax(most, x, nan=True)
        least = cute.arch.fmin(least, x, nan=True)
        total += x
        positive += cutlass.Int32(1) if x > 0.0 else cutlass.Int32(0)
    most = cute.arch.warp_reduction(most, lambda a, b: cute.arch.fmax(a, b, nan=True))
    least = cute.arch.warp_reduction(least, lambda a, b: cute.arch.fmin(a, b, nan=True))
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    positive = cute.arch.warp_redux_sync(positive, "add")
    if lane == 0:
        mMax[row] = most.to(mMax.element_type)
        mMin[row] = least.to(mMin.element_type)
        mMean[row] = total / cutlass.Float32(n)
        mCount[row] = cutlass.Int64(positive)


@cute.jit
def launch(
    x: cute.Tensor, most: cute.Tensor, least: cute.Tensor, mean: cute.Tensor, count: cute.Tensor, stream: cuda.CUstream
):
    facts_kernel(x, most, least, mean, count).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

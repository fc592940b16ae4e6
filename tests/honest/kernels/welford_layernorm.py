"""LayerNorm by Welford's running mean and variance, one warp a row; lanes merge by Chan's formula.

Odd: lanes past the end of a short row hold a count of zero, and merging two of those would divide by zero. Legal: the
guard changes no result. (Chan, Golub, LeVeque: "Updating formulae", 1979.)
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

EPS = 1e-5


@cute.kernel
def layernorm_kernel(mX: cute.Tensor, mW: cute.Tensor, mB: cute.Tensor, mY: cute.Tensor):
    lane, local, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    rows, n = mX.shape
    row = bidx * 4 + local
    if row < rows:
        count = cutlass.Float32(0.0)
        mean = cutlass.Float32(0.0)
        squares = cutlass.Float32(0.0)
        for c in range(lane, n, 32):
            x = mX[row, c]
            count += cutlass.Float32(1.0)
            delta = x - mean
            mean += delta / count
            squares += delta * (x - mean)
        for step in cutlass.range_constexpr(5):
            other_count = cute.arch.shuffle_sync_bfly(count, offset=1 << step)
            other_mean = cute.arch.shuffle_sync_bfly(mean, offset=1 << step)
            other_squares = cute.arch.shuffle_sync_bfly(squares, offset=1 << step)
            both = count + other_count
            weight = other_count / cute.arch.fmax(both, cutlass.Float32(1.0))
            delta = other_mean - mean
            mean += delta * weight
            squares += other_squares + delta * delta * count * weight
            count = both
        rstd = cutlass.Float32(1.0) / cute.math.sqrt(squares / count + EPS)
        for c in range(lane, n, 32):
            mY[row, c] = (mX[row, c] - mean) * rstd * mW[c] + mB[c]


@cute.jit
def launch(x: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    layernorm_kernel(x, weight, bias, y).launch(grid=[(x.shape[0] + 3) // 4, 1, 1], block=[32, 4, 1], stream=stream)

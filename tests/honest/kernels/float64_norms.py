"""Row norms and a scaled copy in fp64.

Odd: fp64, where an H200 has real units and most kernels never go. Legal: any dtype of the problem is.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def norm_kernel(mX: cute.Tensor, mN: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    total = cutlass.Float64(0.0)
    for c in range(lane, mX.shape[1], 32):
        total += mX[row, c] * mX[row, c]
        mY[row, c] = mX[row, c] * cutlass.Float64(0.1)
    for step in cutlass.range_constexpr(5):
        total += cute.arch.shuffle_sync_bfly(total, offset=1 << step)
    if lane == 0:
        mN[row] = cute.math.sqrt(total)


@cute.jit
def launch(x: cute.Tensor, norm: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    norm_kernel(x, norm, y).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

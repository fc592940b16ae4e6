"""A grid-stride loop: seven blocks of 96 threads walk over whatever length there is.

Odd: neither number divides anything, and the grid does not depend on the problem. Legal: every element is written once.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def add_kernel(
    mX: cute.Tensor, mY: cute.Tensor, mZ: cute.Tensor, blocks: cutlass.Constexpr, threads: cutlass.Constexpr
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    for i in range(bidx * threads + tidx, cute.size(mX), blocks * threads):
        mZ[i] = mX[i] + cutlass.Float32(0.5) * mY[i]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, stream: cuda.CUstream):
    add_kernel(x, y, z, 7, 96).launch(grid=[7, 1, 1], block=[96, 1, 1], stream=stream)

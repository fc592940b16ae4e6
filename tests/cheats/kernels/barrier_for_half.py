"""Half of a block waits at a barrier that the other half never reaches.

problem: x + 1 for x: f32[64]
class: races that mostly win
defence: barriers are checked when they are executed
verdicts: barrier_divergence, deadlock, hang
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def half_kernel(mX: cute.Tensor, mY: cute.Tensor, count: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    if tidx < count:
        mY[tidx] = mX[tidx] + 1.0
    if tidx % 32 < 16:
        cute.arch.sync_threads()


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    half_kernel(x, y, x.shape[0]).launch(grid=[1, 1, 1], block=[1024, 1, 1], stream=stream)

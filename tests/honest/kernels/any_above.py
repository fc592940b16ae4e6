"""Whether any element of a row exceeds a threshold, by one ballot a step.

Odd: a boolean output, one byte a row, and no arithmetic on floats. Legal: NaN exceeds nothing, as in PyTorch.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def any_kernel(mX: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    found = cutlass.Int32(0)
    for tile in range((n + 31) // 32):  # the same number of steps for every lane: all take part in the ballot
        c = tile * 32 + lane
        above = cutlass.Boolean(False)
        if c < n:
            above = mX[row, c].to(cutlass.Float32) > 2.5
        found = found | cute.arch.vote_ballot_sync(above)
    if lane == 0:
        mY[row] = (found != 0).to(mY.element_type)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    any_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

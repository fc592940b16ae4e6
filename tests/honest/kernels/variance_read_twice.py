"""Variance in two passes over the input: the mean, then the squared deviations.

Odd: it reads every byte twice, twice what the problem compels. Legal: more traffic than needed is slow, not wrong.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

WARPS = 4


@cute.jit
def block_sum(value: cutlass.Float32, buffer: cute.Tensor):
    """The sum over the block, for every thread."""
    warp = cute.arch.warp_idx()  # a shuffle, so not inside the if
    value = cute.arch.warp_reduction(value, lambda a, b: a + b)
    if cute.arch.lane_idx() == 0:
        buffer[warp] = value
    cute.arch.sync_threads()
    return buffer[0] + buffer[1] + buffer[2] + buffer[3]


@cute.kernel
def variance_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    buffers = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((WARPS, 2)), 16)
    total = cutlass.Float32(0.0)
    for c in range(tidx, n, WARPS * 32):
        total += mX[row, c]
    mean = block_sum(total, buffers[None, 0]) / cutlass.Float32(n)
    squares = cutlass.Float32(0.0)
    for c in range(tidx, n, WARPS * 32):
        delta = mX[row, c] - mean
        squares += delta * delta
    variance = block_sum(squares, buffers[None, 1]) / cutlass.Float32(n)
    if tidx == 0:
        mY[row] = variance


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    variance_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[WARPS * 32, 1, 1], stream=stream)

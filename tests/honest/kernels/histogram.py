"""A histogram of 64 bins: shared-memory atomics within a block, then one 64-bit atomic a bin and block.

Odd: atomics, and yet bit-exact. Legal without ``deterministic = False``: integer additions commute.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

BINS = 64


@cute.kernel
def zero_kernel(mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    mY[tidx] = cutlass.Int64(0)


@cute.kernel
def count_kernel(mX: cute.Tensor, mY: cute.Tensor, blocks: cutlass.Constexpr, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    bins = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(BINS), 16)
    if tidx < BINS:
        bins[tidx] = 0
    cute.arch.sync_threads()
    for i in range(bidx * threads + tidx, cute.size(mX), blocks * threads):
        value = cutlass.min(cutlass.max(mX[i], 0), BINS - 1)
        cute.arch.atomic_add(bins.iterator + value, cutlass.Int32(1))
    cute.arch.sync_threads()
    if tidx < BINS:
        cute.arch.atomic_add(mY.iterator + tidx, cutlass.Int64(bins[tidx]))


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream, blocks: cutlass.Constexpr = 8):
    zero_kernel(y).launch(grid=[1, 1, 1], block=[BINS, 1, 1], stream=stream)
    count_kernel(x, y, blocks, 256).launch(grid=[blocks, 1, 1], block=[256, 1, 1], stream=stream)

"""Subtracts the maximum of everything from everything in one kernel: a barrier over the whole grid stands in between.

Odd: blocks wait for all others in the middle. Legal: the launch is cooperative, so all of them run at once; the counter
and the maximum are reset by a launch before. The maximum of integers does not depend on the order of atomics.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

BLOCKS, THREADS = 8, 128


def workspace(workload, config):
    return [("peak", "i32", (1,)), ("arrived", "i32", (1,))]


@cute.kernel
def reset_kernel(mP: cute.Tensor, mA: cute.Tensor):
    mP[0] = cutlass.Int32(-(1 << 31))
    mA[0] = cutlass.Int32(0)


@cute.kernel
def subtract_kernel(mX: cute.Tensor, mY: cute.Tensor, mP: cute.Tensor, mA: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    n = cute.size(mX)
    peak = cutlass.Int32(-(1 << 31))
    for i in range(bidx * THREADS + tidx, n, BLOCKS * THREADS):
        peak = cutlass.max(peak, mX[i])
    peak = cute.arch.warp_redux_sync(peak, "max")
    if tidx % 32 == 0:
        cute.arch.atomic_max(mP.iterator, peak)
    cute.arch.sync_threads()
    if tidx == 0:
        cute.arch.fence_acq_rel_gpu()
        cute.arch.atomic_add(mA.iterator, cutlass.Int32(1), sem="release", scope="gpu")
        seen = cute.arch.load(mA.iterator, cutlass.Int32, sem="acquire", scope="gpu")
        while seen < BLOCKS:
            seen = cute.arch.load(mA.iterator, cutlass.Int32, sem="acquire", scope="gpu")
    cute.arch.sync_threads()
    peak = cute.arch.load(mP.iterator, cutlass.Int32, sem="relaxed", scope="gpu")
    for i in range(bidx * THREADS + tidx, n, BLOCKS * THREADS):
        mY[i] = mX[i] - peak


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, peak: cute.Tensor, arrived: cute.Tensor, stream: cuda.CUstream):
    reset_kernel(peak, arrived).launch(grid=[1, 1, 1], block=[1, 1, 1], stream=stream)
    subtract_kernel(x, y, peak, arrived).launch(
        grid=[BLOCKS, 1, 1], block=[THREADS, 1, 1], cooperative=True, stream=stream
    )

"""Counts of last digits: lanes with the same digit find each other, and one of them adds for all.

Odd: which lanes act together is data. Legal: a digit's leader is its lowest lane, and it adds how many they are.
Digits of negative numbers are Python's, not C's.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

THREADS = 128


@cute.kernel
def zero_kernel(mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    mY[tidx] = cutlass.Int32(0)


@cute.kernel
def count_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * THREADS + tidx
    digit = cutlass.Int32(-1)
    if i < cute.size(mX):
        digit = ((mX[i] % 10) + 10) % 10
    peers = cute.arch.match_sync(cutlass.Int32(-1), digit, "any")
    lane = tidx % 32
    leads = (peers & (-peers)) == (cutlass.Int32(1) << lane)
    if leads and digit >= 0:
        cute.arch.atomic_add(mY.iterator + digit, cute.arch.popc(peers))


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    zero_kernel(y).launch(grid=[1, 1, 1], block=[10, 1, 1], stream=stream)
    count_kernel(x, y).launch(
        grid=[(cute.size(x) + THREADS - 1) // THREADS, 1, 1], block=[THREADS, 1, 1], stream=stream
    )

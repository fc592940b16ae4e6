"""Cumulative sum of one long vector in one pass: blocks wait for the blocks before them ("decoupled look-back").

Odd: blocks spin on flags that other blocks set. Legal: a block takes its number from a counter as it starts, so whoever
it waits for is already running (Merrill, Garland: "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016).
Integers make every order of additions the same, and those of 16 bits fit: a block's sum in 32 bits, all sums in 40. A
status word is (flag, sum): 1 for a block's own sum, 2 for the sum of all up to it.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

THREADS = 128
SUM_BITS = 40
OFFSET = 1 << (SUM_BITS - 1)  # keeps the sum's field positive


def workspace(workload, config):
    return [("status", "i64", ((workload.inputs[0].shape[0] + THREADS - 1) // THREADS,)), ("counter", "i32", (1,))]


@cute.kernel
def reset_kernel(mS: cute.Tensor, mC: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    for i in range(tidx, cute.size(mS), THREADS):
        mS[i] = cutlass.Int64(0)
    if tidx == 0:
        mC[0] = cutlass.Int32(0)


@cute.jit
def publish(mS: cute.Tensor, block: cutlass.Int32, flag: cutlass.Constexpr, total: cutlass.Int64):
    word = cutlass.Int64(flag << SUM_BITS) | (total + cutlass.Int64(OFFSET))
    cute.arch.store(mS.iterator + block, word, sem="release", scope="gpu")


@cute.kernel
def scan_kernel(mX: cute.Tensor, mY: cute.Tensor, mS: cute.Tensor, mC: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    lane, warp = tidx % 32, tidx // 32
    smem = cutlass.utils.SmemAllocator()
    sums = smem.allocate_tensor(cutlass.Int32, cute.make_layout(THREADS // 32), 16)
    shared_before = smem.allocate_tensor(cutlass.Int64, cute.make_layout(1), 16)
    number = smem.allocate_tensor(cutlass.Int32, cute.make_layout(1), 16)
    if tidx == 0:
        number[0] = cute.arch.atomic_add(mC.iterator, cutlass.Int32(1))
    cute.arch.sync_threads()
    block = number[0]
    i = block * THREADS + tidx
    value = cutlass.Int32(0)
    if i < cute.size(mX):
        value = cutlass.Int32(mX[i])
    for step in cutlass.range_constexpr(5):
        before = cute.arch.shuffle_sync_up(value, 1 << step)
        if lane >= (1 << step):
            value += before
    if lane == 31:
        sums[warp] = value
    cute.arch.sync_threads()
    total = cutlass.Int32(0)
    for w in cutlass.range_constexpr(THREADS // 32):
        if w < warp:
            value += sums[w]
        total += sums[w]
    if tidx == 0:
        prefix = cutlass.Int64(0)
        if block == 0:
            publish(mS, block, 2, cutlass.Int64(total))
        else:
            publish(mS, block, 1, cutlass.Int64(total))
            back = block - 1
            while back >= 0:
                word = cute.arch.load(mS.iterator + back, cutlass.Int64, sem="acquire", scope="gpu")
                flag = word >> SUM_BITS
                if flag != 0:
                    prefix += (word & cutlass.Int64((1 << SUM_BITS) - 1)) - cutlass.Int64(OFFSET)
                    back = back - 1 if flag == 1 else cutlass.Int32(-1)
            publish(mS, block, 2, prefix + cutlass.Int64(total))
        shared_before[0] = prefix
    cute.arch.sync_threads()
    if i < cute.size(mX):
        mY[i] = shared_before[0] + cutlass.Int64(value)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, status: cute.Tensor, counter: cute.Tensor, stream: cuda.CUstream):
    reset_kernel(status, counter).launch(grid=[1, 1, 1], block=[THREADS, 1, 1], stream=stream)
    scan_kernel(x, y, status, counter).launch(grid=[cute.size(status), 1, 1], block=[THREADS, 1, 1], stream=stream)

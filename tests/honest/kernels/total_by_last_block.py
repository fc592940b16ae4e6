"""The sum of everything into a scalar: blocks leave partial sums, and the last to arrive adds them up.

Odd: a ticket counter in the workspace decides which block is last, and the output has no dimensions. Legal: a fence
stands before the ticket, a first launch resets the counter, and the partial sums are added in a fixed order, so the
result is the same bits whichever block comes last (CUDA's ``threadFenceReduction`` sample).
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

BLOCKS, THREADS = 12, 256


def workspace(workload, config):
    return [("part", "f32", (BLOCKS,)), ("ticket", "i32", (1,))]


@cute.kernel
def reset_kernel(mT: cute.Tensor):
    mT[0] = cutlass.Int32(0)


@cute.kernel
def sum_kernel(mX: cute.Tensor, mY: cute.Tensor, mP: cute.Tensor, mT: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    sums = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(THREADS // 32), 16)
    total = cutlass.Float32(0.0)
    for i in range(bidx * THREADS + tidx, cute.size(mX), BLOCKS * THREADS):
        total += mX[i]
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    if tidx % 32 == 0:
        sums[tidx // 32] = total
    cute.arch.sync_threads()
    if tidx == 0:
        total = cutlass.Float32(0.0)
        for i in cutlass.range_constexpr(THREADS // 32):
            total += sums[i]
        mP[bidx] = total
        cute.arch.fence_acq_rel_gpu()
        ticket = cute.arch.atomic_add(mT.iterator, cutlass.Int32(1), sem="acq_rel", scope="gpu")
        if ticket == BLOCKS - 1:
            cute.arch.fence_acq_rel_gpu()
            total = cutlass.Float32(0.0)
            for i in range(BLOCKS):
                total += cute.arch.load(mP.iterator + i, cutlass.Float32, sem="relaxed", scope="gpu")
            cute.make_tensor(mY.iterator, cute.make_layout(1))[0] = total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, part: cute.Tensor, ticket: cute.Tensor, stream: cuda.CUstream):
    reset_kernel(ticket).launch(grid=[1, 1, 1], block=[1, 1, 1], stream=stream)
    sum_kernel(x, y, part, ticket).launch(grid=[BLOCKS, 1, 1], block=[THREADS, 1, 1], stream=stream)

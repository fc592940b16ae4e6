"""Sums of squares through a four-stage cp.async pipeline in shared memory.

Odd: copies are issued three stages ahead and waited for by group number; past the end of the row the groups are empty,
so that the count stays right. Legal: a stage is read only after its group has arrived, and overwritten after a barrier.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync

STAGES, THREADS, VEC = 4, 128, 4
TILE = THREADS * VEC


@cute.kernel
def squares_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    tiles = n // TILE  # whole tiles go through the pipeline, the rest is read directly
    smem = cutlass.utils.SmemAllocator()
    sX = smem.allocate_tensor(cutlass.Float32, cute.make_layout((VEC, THREADS, STAGES)), 16)
    sums = smem.allocate_tensor(cutlass.Float32, cute.make_layout(THREADS // 32), 16)
    total = cutlass.Float32(0.0)
    if cutlass.const_expr(n % 4 == 0 and tiles > 0):
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        gX = cute.make_tensor(
            mX[row, None].iterator.align(16), cute.make_layout((VEC, THREADS, tiles), stride=(1, VEC, TILE))
        )
        for stage in cutlass.range_constexpr(STAGES - 1):
            if cutlass.const_expr(stage < tiles):
                cute.copy(atom, gX[None, tidx, stage], sX[None, tidx, stage])
            cute.arch.cp_async_commit_group()
        for tile in range(tiles):
            cute.arch.cp_async_wait_group(STAGES - 2)
            cute.arch.sync_threads()
            ahead = tile + STAGES - 1
            if ahead < tiles:
                cute.copy(atom, gX[None, tidx, ahead], sX[None, tidx, ahead % STAGES])
            cute.arch.cp_async_commit_group()
            values = sX[None, tidx, tile % STAGES].load()
            total += (values * values).reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
        for c in range(tiles * TILE + tidx, n, THREADS):
            total += mX[row, c] * mX[row, c]
    else:
        for c in range(tidx, n, THREADS):
            total += mX[row, c] * mX[row, c]
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    if tidx % 32 == 0:
        sums[tidx // 32] = total
    cute.arch.sync_threads()
    if tidx == 0:
        mY[row] = sums[0] + sums[1] + sums[2] + sums[3]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    squares_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[THREADS, 1, 1], stream=stream)

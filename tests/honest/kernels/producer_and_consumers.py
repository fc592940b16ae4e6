"""Warp specialisation: one warp loads tiles into a ring in shared memory, another sums them, a third their squares.

Odd: warps of one block run different code and meet at mbarriers, whose phases count the turns of the ring. Legal: every
warp arrives as often as the barriers expect.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

STAGES, TILE = 3, 256


@cute.kernel
def sums_kernel(mX: cute.Tensor, mS: cute.Tensor, mQ: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    lane, warp = tidx % 32, tidx // 32
    n = mX.shape[1]
    tiles = (n + TILE - 1) // TILE
    smem = cutlass.utils.SmemAllocator()
    ring = smem.allocate_tensor(cutlass.Float32, cute.make_layout((TILE, STAGES)), 16)
    full = smem.allocate_array(cutlass.Int64, num_elems=STAGES)
    empty = smem.allocate_array(cutlass.Int64, num_elems=STAGES)
    if tidx == 0:
        for stage in cutlass.range_constexpr(STAGES):
            cute.arch.mbarrier_init(full + stage, 32)
            cute.arch.mbarrier_init(empty + stage, 64)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    total = cutlass.Float32(0.0)
    for tile in range(tiles):
        stage = tile % STAGES
        turn = (tile // STAGES) % 2
        if warp == 0:
            if tile >= STAGES:
                cute.arch.mbarrier_wait(empty + stage, 1 - turn)
            for i in cutlass.range_constexpr(TILE // 32):
                c = tile * TILE + i * 32 + lane
                value = cutlass.Float32(0.0)
                if c < n:
                    value = mX[row, c]
                ring[i * 32 + lane, stage] = value
            cute.arch.mbarrier_arrive(full + stage)
        else:
            cute.arch.mbarrier_wait(full + stage, turn)
            for i in cutlass.range_constexpr(TILE // 32):
                value = ring[i * 32 + lane, stage]
                total += value if warp == 1 else value * value
            cute.arch.mbarrier_arrive(empty + stage)
    if warp > 0:
        total = cute.arch.warp_reduction(total, lambda a, b: a + b)
        if lane == 0:
            if warp == 1:
                mS[row] = total
            else:
                mQ[row] = total


@cute.jit
def launch(x: cute.Tensor, total: cute.Tensor, squares: cute.Tensor, stream: cuda.CUstream):
    sums_kernel(x, total, squares).launch(grid=[x.shape[0], 1, 1], block=[96, 1, 1], stream=stream)

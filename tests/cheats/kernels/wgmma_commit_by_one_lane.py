"""A product that one lane of each warp commits: others wait for a group that holds nothing.

problem: a @ b for a: bf16[328,200], b: bf16[200,264]
class: races that mostly win
defence: the emulator asks for all lanes of a warp at wgmma.commit_group
verdicts: barrier_divergence, hang, non_deterministic
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90
from cutlass.cute.nvgpu import cpasync, warp, warpgroup

BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 64
STAGES = 3
CLUSTER = 2
CONSUMERS = 256
STORED = 1  # the named barrier of the consumers


@cute.jit
def next_stage(stage, phase):
    stage = stage + 1
    if stage == STAGES:
        stage = 0
        phase = phase ^ 1
    return stage, phase


@cute.kernel
def gemm_kernel(
    tma_a: cute.CopyAtom,
    mA: cute.Tensor,
    tma_b: cute.CopyAtom,
    mB: cute.Tensor,
    tma_c: cute.CopyAtom,
    mC: cute.Tensor,
    mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    layout_c: cute.ComposedLayout,
    dtype: cutlass.Constexpr,
    pairs_m: cutlass.Constexpr,
    tiles: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    first = cute.arch.block_idx()[0] // CLUSTER
    step = cute.arch.grid_dim()[0] // CLUSTER

    @cute.struct
    class Storage:
        full: cute.struct.MemRange[cutlass.Int64, STAGES]
        empty: cute.struct.MemRange[cutlass.Int64, STAGES]
        a: cute.struct.Align[cute.struct.MemRange[dtype, cute.cosize(layout_a)], 1024]
        b: cute.struct.Align[cute.struct.MemRange[dtype, cute.cosize(layout_b)], 1024]
        c: cute.struct.Align[cute.struct.MemRange[dtype, cute.cosize(layout_c)], 1024]

    storage = utils.SmemAllocator().allocate(Storage)
    sA = storage.a.get_tensor(layout_a.outer, swizzle=layout_a.inner)
    sB = storage.b.get_tensor(layout_b.outer, swizzle=layout_b.inner)
    sC = storage.c.get_tensor(layout_c.outer, swizzle=layout_c.inner)
    full, empty = storage.full.data_ptr(), storage.empty.data_ptr()

    if tidx == 0:
        for i in cutlass.range_constexpr(STAGES):
            cute.arch.mbarrier_init(full + i, 1)
            cute.arch.mbarrier_init(empty + i, CLUSTER * CONSUMERS // 128)
        cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()

    gA = cute.local_tile(mA, (BLOCK_M, BLOCK_K), (None, None))
    gB = cute.local_tile(mB, (BLOCK_N, BLOCK_K), (None, None))
    gC = cute.local_tile(mC, (BLOCK_M, BLOCK_N), (None, None))
    alone, cluster = cute.make_layout(1), cute.make_layout(CLUSTER)
    tAsA, tAgA = cpasync.tma_partition(tma_a, 0, alone, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
    tBsB, tBgB = cpasync.tma_partition(tma_b, rank, cluster, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2))
    tCsC, tCgC = cpasync.tma_partition(tma_c, 0, alone, cute.group_modes(sC, 0, 2), cute.group_modes(gC, 0, 2))
    k_tiles = cute.size(gA, mode=[3])
    both = cutlass.Int16((1 << CLUSTER) - 1)  # blocks that a load of B goes to
    stage_bytes = (BLOCK_M + BLOCK_N) * BLOCK_K * dtype.width // 8

    if warp_idx == CONSUMERS // 32:
        stage, phase = cutlass.Int32(0), cutlass.Int32(1)  # every stage begins empty
        for tile in cutlass.range(first, tiles, step, unroll=1):
            m, n = tile % pairs_m * CLUSTER + rank, tile // pairs_m
            for k in cutlass.range(k_tiles, unroll=1):
                cute.arch.mbarrier_wait(empty + stage, phase)
                with cute.arch.elect_one():
                    cute.arch.mbarrier_arrive_and_expect_tx(full + stage, stage_bytes)
                cute.copy(tma_a, tAgA[None, m, k], tAsA[None, stage], tma_bar_ptr=full + stage)
                cute.copy(tma_b, tBgB[None, n, k], tBsB[None, stage], tma_bar_ptr=full + stage, mcast_mask=both)
                stage, phase = next_stage(stage, phase)
    elif tidx < CONSUMERS:
        thr_mma = mma.get_slice(tidx)
        tCrA = mma.make_fragment_A(thr_mma.partition_A(sA))
        tCrB = mma.make_fragment_B(thr_mma.partition_B(sB))
        acc = cute.make_rmem_tensor(mma.partition_shape_C((BLOCK_M, BLOCK_N)), cutlass.Float32)
        to_shared = cute.make_tiled_copy_C(cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype), mma)
        thr_to_shared = to_shared.get_slice(tidx)
        stage, phase, before = cutlass.Int32(0), cutlass.Int32(0), cutlass.Int32(0)
        for tile in cutlass.range(first, tiles, step, unroll=1):
            m, n = tile % pairs_m * CLUSTER + rank, tile // pairs_m
            mma.set(warpgroup.Field.ACCUMULATE, False)
            for k in cutlass.range(k_tiles, unroll=1):
                cute.arch.mbarrier_wait(full + stage, phase)
                warpgroup.fence()
                for k_block in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                    cute.gemm(mma, acc, tCrA[None, None, k_block, stage], tCrB[None, None, k_block, stage], acc)
                    mma.set(warpgroup.Field.ACCUMULATE, True)
                if tidx % 32 == 0:
                    warpgroup.commit_group()
                if k > 0:
                    warpgroup.wait_group(1)
                    if tidx % 128 < CLUSTER:  # one thread for each block that waits
                        cute.arch.mbarrier_arrive(empty + before, tidx % 128)
                before = stage
                stage, phase = next_stage(stage, phase)
            warpgroup.wait_group(0)
            if tidx % 128 < CLUSTER:
                cute.arch.mbarrier_arrive(empty + before, tidx % 128)

            if warp_idx == 0:
                cute.arch.cp_async_bulk_wait_group(0, read=True)  # the tile before has left sC
            cute.arch.barrier(barrier_id=STORED, number_of_threads=CONSUMERS)
            rC = cute.make_fragment_like(acc, dtype)
            rC.store(acc.load().to(dtype))
            cute.copy(to_shared, thr_to_shared.retile(rC), thr_to_shared.partition_D(sC))
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier(barrier_id=STORED, number_of_threads=CONSUMERS)
            if warp_idx == 0:
                cute.copy(tma_c, tCsC, tCgC[None, m, n])
                cute.arch.cp_async_bulk_commit_group()
        if warp_idx == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)
    cute.arch.cluster_arrive()  # no block ends while the other may still signal or fill it
    cute.arch.cluster_wait()


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream, clusters: cutlass.Constexpr = 3):
    bt = cute.make_tensor(b.iterator, cute.select(b.layout, mode=[1, 0]))  # (N, K)
    la, lb, lc = (utils.LayoutEnum.from_tensor(t) for t in (a, bt, c))
    mma = sm90.make_trivial_tiled_mma(
        a.element_type,
        b.element_type,
        la.sm90_mma_major_mode(),
        lb.sm90_mma_major_mode(),
        cutlass.Float32,
        (CONSUMERS // 128, 1, 1),
        tiler_mn=(64, BLOCK_N),
    )
    tile = (BLOCK_M, BLOCK_N, BLOCK_K)
    layout_a = sm90.make_smem_layout_a(la, tile, a.element_type, STAGES)
    layout_b = sm90.make_smem_layout_b(lb, tile, b.element_type, STAGES)
    layout_c = cute.slice_(sm90.make_smem_layout_epi(c.element_type, lc, (BLOCK_M, BLOCK_N), 1), (None, None, 0))
    one_a, one_b = (cute.slice_(layout, (None, None, 0)) for layout in (layout_a, layout_b))
    tma_a, mA = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, one_a, (BLOCK_M, BLOCK_K))
    tma_b, mB = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SMulticastOp(), bt, one_b, (BLOCK_N, BLOCK_K), num_multicast=CLUSTER
    )
    tma_c, mC = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), c, layout_c, (BLOCK_M, BLOCK_N))
    pairs_m = cute.ceil_div(a.shape[0], BLOCK_M * CLUSTER)
    tiles = pairs_m * cute.ceil_div(b.shape[1], BLOCK_N)
    gemm_kernel(
        tma_a, mA, tma_b, mB, tma_c, mC, mma, layout_a, layout_b, layout_c, a.element_type, pairs_m, tiles
    ).launch(
        grid=[min(clusters, tiles) * CLUSTER, 1, 1],
        block=[CONSUMERS + 32, 1, 1],
        cluster=[CLUSTER, 1, 1],
        stream=stream,
    )

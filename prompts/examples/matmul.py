"""y = x @ w.T on Hopper's tensor cores: a warp fills a ring of stages by TMA, a warpgroup multiplies by wgmma."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90
from cutlass.cute.nvgpu import cpasync, warpgroup

TUNABLE = {"tile_m": (64, 128), "tile_n": (64, 128, 256), "stages": (2, 3, 4)}
TILE_K = 64


def constraints(config, workload, device):
    # TMA copies rows whose pitch is a multiple of 16 bytes: eight 16-bit numbers.
    stage_bytes = (config["tile_m"] + config["tile_n"]) * TILE_K * 2
    return workload.inputs[0].shape[1] % 8 == 0 and stage_bytes * config["stages"] <= 220 * 1024


@cute.jit
def next_stage(stage: cutlass.Int32, phase: cutlass.Int32, stages: cutlass.Constexpr):
    """The ring's next stage; the phase of its mbarriers flips at each wrap-around."""
    stage = stage + 1
    if stage == stages:
        stage = 0
        phase = phase ^ 1
    return stage, phase


@cute.kernel
def gemm_kernel(
    tma_a: cute.CopyAtom,
    mA: cute.Tensor,
    tma_b: cute.CopyAtom,
    mB: cute.Tensor,
    mC: cute.Tensor,
    mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    dtype: cutlass.Constexpr,
    k: cutlass.Constexpr,
    tile_m: cutlass.Constexpr,
    tile_n: cutlass.Constexpr,
    stages: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    i, j, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    m, n = mC.shape
    k_tiles = (k + TILE_K - 1) // TILE_K  # TMA fills with zeros past the end of a row, and past the last row

    smem = utils.SmemAllocator()
    full = smem.allocate_array(cutlass.Int64, stages)
    empty = smem.allocate_array(cutlass.Int64, stages)
    sA = smem.allocate_tensor(dtype, layout_a.outer, 1024, swizzle=layout_a.inner)
    sB = smem.allocate_tensor(dtype, layout_b.outer, 1024, swizzle=layout_b.inner)
    if tidx == 0:
        for s in cutlass.range_constexpr(stages):
            cute.arch.mbarrier_init(full + s, 1)
            cute.arch.mbarrier_init(empty + s, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()

    if warp == 4:  # the producer
        gA = cute.local_tile(mA, (tile_m, TILE_K), (i, None))
        gB = cute.local_tile(mB, (tile_n, TILE_K), (j, None))
        one = cute.make_layout(1)
        tAsA, tAgA = cpasync.tma_partition(tma_a, 0, one, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
        tBsB, tBgB = cpasync.tma_partition(tma_b, 0, one, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2))
        stage, phase = cutlass.Int32(0), cutlass.Int32(1)  # phase 1: every stage begins empty
        for k_tile in cutlass.range(k_tiles, unroll=1):
            cute.arch.mbarrier_wait(empty + stage, phase)
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full + stage, (tile_m + tile_n) * TILE_K * dtype.width // 8)
            cute.copy(tma_a, tAgA[None, k_tile], tAsA[None, stage], tma_bar_ptr=full + stage)
            cute.copy(tma_b, tBgB[None, k_tile], tBsB[None, stage], tma_bar_ptr=full + stage)
            stage, phase = next_stage(stage, phase, stages)
    else:  # the consumers: warps 0 to 3
        thr_mma = mma.get_slice(tidx)
        tCrA = mma.make_fragment_A(thr_mma.partition_A(sA))
        tCrB = mma.make_fragment_B(thr_mma.partition_B(sB))
        acc = cute.make_rmem_tensor(mma.partition_shape_C((tile_m, tile_n)), cutlass.Float32)
        mma.set(warpgroup.Field.ACCUMULATE, False)
        stage, phase = cutlass.Int32(0), cutlass.Int32(0)
        for k_tile in cutlass.range(k_tiles, unroll=1):
            cute.arch.mbarrier_wait(full + stage, phase)
            warpgroup.fence()
            for k_block in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                mma.set(warpgroup.Field.ACCUMULATE, k_tile > 0 if k_block == 0 else True)
                cute.gemm(mma, acc, tCrA[None, None, k_block, stage], tCrB[None, None, k_block, stage], acc)
            warpgroup.commit_group()
            warpgroup.wait_group(0)  # the accumulators are complete, and the stage has been read
            if tidx == 0:
                cute.arch.mbarrier_arrive(empty + stage)
            stage, phase = next_stage(stage, phase, stages)

        tCcC = thr_mma.partition_C(cute.make_identity_tensor((tile_m, tile_n)))
        for e in cutlass.range_constexpr(cute.size(acc)):
            row, column = tCcC[e][0] + i * tile_m, tCcC[e][1] + j * tile_n
            if row < m and column < n:
                mC[row, column] = acc[e].to(mC.element_type)


def tma_view(x):
    """``x`` as TMA addresses it: a static size of 1 would drop the dimension from the tensor map."""
    rows, k = x.shape
    return cute.make_tensor(x.iterator, cute.make_layout((rows if rows > 1 else cutlass.Int32(1), k), stride=(k, 1)))


@cute.jit
def launch(
    x: cute.Tensor,
    w: cute.Tensor,
    y: cute.Tensor,
    stream: cuda.CUstream,
    tile_m: cutlass.Constexpr = 128,
    tile_n: cutlass.Constexpr = 128,
    stages: cutlass.Constexpr = 4,
):
    m, k = x.shape
    n = w.shape[0]
    dtype = x.element_type
    rows = utils.LayoutEnum.ROW_MAJOR  # both operands are contiguous along k
    major = rows.sm90_mma_major_mode()
    mma = sm90.make_trivial_tiled_mma(dtype, dtype, major, major, cutlass.Float32, (1, 1, 1), tiler_mn=(64, tile_n))
    layout_a = sm90.make_smem_layout_a(rows, (tile_m, tile_n, TILE_K), dtype, stages)
    layout_b = sm90.make_smem_layout_b(rows, (tile_m, tile_n, TILE_K), dtype, stages)
    load = cpasync.CopyBulkTensorTileG2SOp()
    stage_a, stage_b = cute.slice_(layout_a, (None, None, 0)), cute.slice_(layout_b, (None, None, 0))
    tma_a, mA = cpasync.make_tiled_tma_atom(load, tma_view(x), stage_a, (tile_m, TILE_K))
    tma_b, mB = cpasync.make_tiled_tma_atom(load, tma_view(w), stage_b, (tile_n, TILE_K))
    gemm_kernel(tma_a, mA, tma_b, mB, y, mma, layout_a, layout_b, dtype, k, tile_m, tile_n, stages).launch(
        grid=[(m + tile_m - 1) // tile_m, (n + tile_n - 1) // tile_n, 1], block=[160, 1, 1], stream=stream
    )

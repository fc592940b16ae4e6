"""The warp-specialised matrix product for Hopper's tensor cores, and its launch.

A kernel may have several A operands (left) and several B operands (right). Each of ``terms`` (left, right, sum) adds
the product of two operands to one of the kernel's sums. :func:`tile_epilogue` turns a tile's sums into results;
``gemm_row_reduce_sm90`` overrides it.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90
from cutlass import Float32
from cutlass.cute.nvgpu import cpasync, warp, warpgroup

from cutegen_lab.templates.kernels.device.aux_loads import aux_layout, aux_steps_of, aux_view, place_of, read_aux
from cutegen_lab.templates.kernels.device.epilogue_access import fetch, put
from cutegen_lab.templates.kernels.device.fp32_halves import halve_row, restored
from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait
from cutegen_lab.templates.kernels.device.tf32 import copied_along_k, tf32_mma, tf32_scratch_size, tf32_views
from cutegen_lab.templates.kernels.device.tile_walk import next_stage, stage_after, tile_at
from cutegen_lab.templates.kernels.device.tma_copies import converted, copied_row_by_row, scratch_size
from cutegen_lab.templates.kernels.device.tma_views import fit_together, tma_view, tma_views
from cutegen_lab.templates.kernels.device.views import view
from cutegen_lab.templates.kernels.limits.gemm_sm90 import EPI_STAGE, RESIDENT, stages_that_fit
from cutegen_lab.templates.kernels.plain_matmul import multiply_plainly
from cutegen_lab.templates.kernels.split_k_reduce import add_up

__all__ = [  # names that generated modules use or substitute
    "copied",
    "copied_along_k",
    "copied_row_by_row",
    "halved",
    "multiply",
    "restored",
    "scratch_size",
    "tf32_mma",
    "tf32_scratch_size",
    "tf32_views",
    "view",
]

LEAST = 1 << 18  # m·n·k below which one plain kernel is faster than a conversion and a product on the tensor cores
make_mma = sm90.make_trivial_tiled_mma  # replaced for TF32 by tf32_mma
views_of = tma_views  # replaced for TF32 by tf32_views
restore = None  # replaced for split fp32 by restored()


def epilogue(acc):
    """Placeholder, replaced in a generated module: a function of one fp32 vector per sum, ``extras`` and ``sizes``."""
    return acc


@cute.jit
def multiply(
    mAs: tuple,
    mBs: tuple,
    by_tma: tuple,
    fp32_operands: tuple,
    mC: cute.Tensor,
    partials: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
    split_k: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    cluster_shape_mn: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    schedule: cutlass.Constexpr,
    raster: cutlass.Constexpr,
    group: cutlass.Constexpr,
):
    """``mC`` (m, n, batch): the epilogue of products ``pairs`` of ``mAs`` (m, k, batch) and ``mBs`` (n, k, batch).
    ``by_tma``: the A and B operands in the form that TMA loads. A plain kernel multiplies what TMA cannot address.
    ``partials``: workspace for the results of ``split_k`` parts of k."""
    ready, k = (views_of(by_tma[0]), views_of(by_tma[1])), cute.size(mAs[0], mode=[1])
    if cutlass.const_expr(None not in ready and fit_together(ready, (*mAs, *mBs))):
        terms = terms_of(pairs, len(fp32_operands) > 0)
        if cutlass.const_expr(split_k > 1 and k > tile_shape_mnk[2]):  # one step is not split
            m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
            layout = cute.make_layout((m, n, batches * split_k), stride=(n, 1, m * n))
            mPart = cute.make_tensor(partials.iterator, layout)
            multiply_by_wgmma(
                *ready, mPart, fp32_operands, extras, stream, sizes, k, terms, split_k, tile_shape_mnk,
                cluster_shape_mn, stages, schedule, raster, group, None, None,
            )  # fmt: skip
            layout = cute.make_layout((m, n, batches, split_k), stride=(n, 1, m * n, batches * m * n))
            add_up(cute.make_tensor(partials.iterator, layout), mC, extras, stream, sizes)
        else:
            multiply_by_wgmma(
                *ready, mC, fp32_operands, extras, stream, sizes, k, terms, 1, tile_shape_mnk,
                cluster_shape_mn, stages, schedule, raster, group, None, None,
            )  # fmt: skip
    else:
        multiply_plainly(mAs, mBs, mC, extras, stream, sizes, pairs)


def copied(sides, rooms, mC, small, stream, copy):
    """Operands in a layout that TMA can address: those with room for a copy in ``rooms`` are copied by ``copy``.
    Returns ``small`` if the product is too small to convert."""
    if not worth_converting(mC, sides):
        return small
    return tuple(
        tuple(x if room is None else copy(x, room, stream) for x, room in zip(side, of))
        for side, of in zip(sides, rooms)
    )


def halved(sides, rooms, scales, mC, pairs, stream):
    """Splits the fp32 operands of A and B into fp16 halves, high and low. Returns the halves and, per pair, the
    operands with their scales; both empty if the product is too small to convert."""
    if not worth_converting(mC, sides):
        return ((), ()), ()
    scales = tuple(tuple(scales_of(x, scale) for x, scale in zip(*side)) for side in zip(sides, scales))
    halves = tuple(
        sum((converted(*each, halve_row, stream) for each in zip(*side)), ()) for side in zip(sides, rooms, scales)
    )
    (mAs, mBs), (a, b) = sides, scales
    return halves, tuple((mAs[left], mBs[right], a[left], b[right]) for left, right in pairs)


def worth_converting(mC, sides):
    return cute.size(mC) * cute.size(sides[0][0], mode=[1]) >= LEAST


def scales_of(x, scale):
    """``scale`` as (4, rows, batch) of operand ``x`` (rows, k, batch); batch stride 0 if all batches share it."""
    rows, batches = (cute.size(x, mode=[d]) for d in (0, 2))
    pitch = 4 * rows if scale.shape[0] > 1 else 0
    return cute.make_tensor(scale.iterator, cute.make_layout((4, rows, batches), stride=(1, 4, pitch)))


@cute.jit
def multiply_by_wgmma(
    mAs: tuple,
    mBs: tuple,
    mC: cute.Tensor,
    fp32_operands: tuple,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    k: cutlass.Constexpr,
    terms: cutlass.Constexpr,
    split_k: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    cluster_shape_mn: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    schedule: cutlass.Constexpr,
    raster: cutlass.Constexpr,
    group: cutlass.Constexpr,
    mParts: cute.Tensor,
    rows: cutlass.Constexpr,
):
    """``rows`` and ``mParts`` are None unless the epilogue reduces rows. ``rows``: shape of the buffers for values that
    a block's warps receive from other blocks, and which of ``extras`` may be auxiliary loads."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    cluster_m, cluster_n = cluster_shape_mn
    a_dtype, b_dtype, c_dtype = mAs[0].element_type, mBs[0].element_type, mC.element_type
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    batches = batches // split_k
    teams = 2 if schedule == "pingpong" else 1
    team_groups = 1 if teams == 2 else min(tile_m // 64, 2)
    places, ahead = ((0, 0, 0, 0), None) if rows is None else rows
    loads, room = (len(mAs), len(mBs)), math.prod(places) * 4
    ab_stage = min(stages, stages_that_fit(tile_shape_mnk, teams * team_groups, loads, a_dtype.width // 8, room))
    aligned = tma_view(mC, (1,)) if n * c_dtype.width % 128 == 0 else None  # TMA stores whole units of 16 bytes
    if cutlass.const_expr(ahead is None):  # two teams need no auxiliary loads: one computes while the other waits
        ahead = range(len(extras) if aligned is not None and split_k == 1 and teams == 1 else 0)
    views = tuple(aux_view(x) if o in ahead else None for o, x in enumerate(extras))
    if cutlass.const_expr(len([x for x in views if x is not None]) > ab_stage):  # all loads of a piece must fit
        views = tuple(None for _ in extras)
    stage_bits = max(tile_m * len(mAs), tile_n * len(mBs)) * tile_k * a_dtype.width
    epi_tile, slots, aux = aux_steps_of(views, c_dtype, tile_shape_mnk, 64 * team_groups, stage_bits)
    major_a, major_b = utils.LayoutEnum.from_tensor(mAs[0]), utils.LayoutEnum.from_tensor(mBs[0])
    fused_b = fused_b_of(mAs, mBs, fp32_operands, tile_shape_mnk, major_b)
    if cutlass.const_expr(fused_b > 1):
        terms = ((0, 0, 0),)
    promoted = len(terms) if a_dtype.width == 8 else len(fp32_operands)
    majors = major_a.sm90_mma_major_mode(), major_b.sm90_mma_major_mode()
    mma, epi_mma = (
        make_mma(a_dtype, b_dtype, *majors, Float32, (team_groups, 1, 1), tiler_mn=(64, columns))
        for columns in (tile_n * fused_b, epi_tile[1])
    )
    layout_a = sm90.make_smem_layout_a(major_a, tile_shape_mnk, a_dtype, ab_stage * len(mAs))
    layout_b = sm90.make_smem_layout_b(major_b, tile_shape_mnk, b_dtype, ab_stage * len(mBs))
    wide_mnk = (tile_m, tile_n * fused_b, tile_k)
    layout_wide = sm90.make_smem_layout_b(major_b, wide_mnk, b_dtype, ab_stage * len(mBs) // fused_b)
    layout_c = sm90.make_smem_layout_epi(c_dtype, utils.LayoutEnum.ROW_MAJOR, epi_tile, EPI_STAGE * teams)
    stage_a, stage_b, stage_c = (cute.slice_(layout, (None, None, 0)) for layout in (layout_a, layout_b, layout_c))
    shares = 1 if mParts is not None else cluster_n  # parts of a tile of A, one loaded by each block
    by_tma_a = [
        cpasync.make_tiled_tma_atom(load_op(cluster_n), x, stage_a, (tile_m, tile_k), num_multicast=shares) for x in mAs
    ]
    by_tma_b = [
        cpasync.make_tiled_tma_atom(load_op(cluster_m), x, stage_b, (tile_n, tile_k), num_multicast=cluster_m)
        for x in mBs
    ]
    tma_c, tC = None, None
    if cutlass.const_expr(aligned is not None):
        tma_c, tC = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), aligned, stage_c, epi_tile)
    layouts_e = tuple(
        None if x is None else aux_layout(x.element_type, epi_tile, slots, ab_stage, stage_bits) for x in views
    )
    by_tma_e = [
        (None, None)
        if x is None
        else cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileG2SOp(), x, cute.slice_(layout, (None, None, 0, 0)), epi_tile
        )
        for x, layout in zip(views, layouts_e)
    ]
    clusters = cute.ceil_div(m, tile_m * cluster_m) * cute.ceil_div(n, tile_n * cluster_n) * batches * split_k
    operands = unzipped(by_tma_a), unzipped(by_tma_b)
    epi_args = fp32_operands, extras, mParts, *unzipped(by_tma_e), layouts_e
    layouts = layout_a, layout_b, layout_wide, layout_c
    tiling = (m, n, k, batches), tile_shape_mnk, epi_tile, cluster_shape_mn, teams
    result, mmas, dtypes = (tma_c, tC, mC), (mma, epi_mma), (a_dtype, b_dtype, c_dtype)
    walk, summed = (group, raster == "n"), (terms, promoted, fused_b, split_k)
    gemm_kernel(operands, result, epi_args, mmas, layouts, dtypes, sizes, aux, tiling, walk, summed, places).launch(
        grid=[min(clusters, RESIDENT[cluster_m * cluster_n]) * cluster_m * cluster_n, 1, 1],
        block=[(teams * team_groups + 1) * 128, 1, 1],
        cluster=[cluster_m * cluster_n, 1, 1],
        min_blocks_per_mp=1,  # tells ptxas how many registers setmaxregister can redistribute
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


def terms_of(pairs, halved):
    """(left, right, sum) of each product that the wgmma kernel adds up. With fp16 halves, operands come in pairs (high,
    low), and the products of a high and a low half follow, in separate sums."""
    if not halved:
        return tuple((left, right, number) for number, (left, right) in enumerate(pairs))
    high = [(2 * left, 2 * right, number) for number, (left, right) in enumerate(pairs)]
    low = [
        term
        for left, right, number in high
        for term in ((left, right + 1, number + len(pairs)), (left + 1, right, number + len(pairs)))
    ]
    return (*high, *low)


def fused_b_of(mAs, mBs, fp32_operands, tile_shape_mnk, major_b):
    """Number of B operands that one wgmma multiplies as a single wide tile. Their tiles must be adjacent in shared
    memory: rows, or columns if these are contiguous, must fill whole rows of the widest swizzle."""
    _, tile_n, tile_k = tile_shape_mnk
    one_left = len(mAs) == 1 and not fp32_operands and len(mBs) * tile_n <= 256
    row_bits, column_bits = (length * mBs[0].element_type.width for length in (tile_k, tile_n))
    whole = column_bits % 1024 == 0 if major_b == utils.LayoutEnum.COL_MAJOR else row_bits == 1024
    return len(mBs) if one_left and whole else 1


def unzipped(pairs):
    """(atoms, tensors) of ``pairs``."""
    return tuple(atom for atom, _ in pairs), tuple(x for _, x in pairs)


def load_op(blocks):
    """A TMA load for one block, or multicast to several blocks of a cluster."""
    return cpasync.CopyBulkTensorTileG2SMulticastOp() if blocks > 1 else cpasync.CopyBulkTensorTileG2SOp()


def load(tma, tX, at, slot, barrier, mask=None):
    """Starts the TMA copy of tile ``at`` to ``slot``. ``tX``: the (shared, global) views from ``tma_partition``."""
    smem, gmem = tX
    cute.copy(tma, gmem[(None, *at)], smem[(None, *slot)], tma_bar_ptr=barrier, mcast_mask=mask)


@cute.kernel
def gemm_kernel(
    operands: tuple,
    result: tuple,
    epi_args: tuple,
    mmas: tuple,
    layouts: tuple,
    dtypes: cutlass.Constexpr,
    sizes: cutlass.Constexpr,
    aux: cutlass.Constexpr,
    tiling: cutlass.Constexpr,
    walk: cutlass.Constexpr,
    summed: cutlass.Constexpr,
    places: cutlass.Constexpr,
):
    """One warp, the producer, loads tiles of A and B by TMA. The consumer warpgroups multiply, as one team or as two
    teams that take tiles in turn. The kernel is persistent: a block takes tile after tile.

    ``operands`` and ``result``: TMA atoms and their tensors. ``epi_args``: ``fp32_operands`` (the originals of fp16
    halves), what the epilogue reads, and the atoms, tensors and layouts of its auxiliary loads (else None). ``summed``:
    the terms; ``promoted``: how many sums are added to fp32 totals after each step along k (fp32 halves, 8 bits);
    ``fused_b``: number of adjacent tiles of B that are multiplied as one; ``split_k``. ``mParts`` and ``places`` (shape
    of the buffers for values from other blocks) are for an epilogue that reduces rows: then blocks that share tiles of
    A load whole tiles in turn, since a tile need not divide into as many parts as there are blocks.
    """
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    ((tmas_a, mAs), (tmas_b, mBs)), (tma_c, tC, mC) = operands, result
    fp32_operands, extras, mParts, tmas_e, mEs, layouts_e = epi_args
    (mma, epi_mma), (layout_a, layout_b, layout_wide, layout_c) = mmas, layouts
    (m, n, k, batches), (tile_m, tile_n, tile_k), epi_tile, (cluster_m, cluster_n), teams = tiling
    (terms, promoted, fused_b, split_k), (group, along_n) = summed, walk
    cluster_size = cluster_m * cluster_n
    a_dtype, b_dtype, c_dtype = dtypes
    num_a, num_b, sums = len(mAs), len(mBs), 1 + max(term[2] for term in terms)
    ab_stage = cute.size(layout_a.outer, mode=[2]) // num_a
    team_groups = epi_tile[0] // 64  # warpgroups per team
    team_threads = team_groups * 128
    consumers = teams * team_groups
    in_turn = mParts is not None

    tidx, _, _ = cute.arch.thread_idx()
    warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    warpgroup_idx = cute.arch.make_warp_uniform(tidx // 128)
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    rank_m, rank_n = rank % cluster_m, rank // cluster_m

    if warp_idx == 0:
        for tma in (*tmas_a, *tmas_b, tma_c, *tmas_e):
            if cutlass.const_expr(tma is not None):
                cpasync.prefetch_descriptor(tma)

    @cute.struct
    class Storage:
        full: cute.struct.MemRange[cutlass.Int64, ab_stage]
        empty: cute.struct.MemRange[cutlass.Int64, ab_stage]
        a: cute.struct.Align[cute.struct.MemRange[a_dtype, cute.cosize(layout_a)], 1024]
        b: cute.struct.Align[cute.struct.MemRange[b_dtype, cute.cosize(layout_b)], 1024]
        c: cute.struct.Align[cute.struct.MemRange[c_dtype, cute.cosize(layout_c)], 1024]
        exchanged: cute.struct.Align[cute.struct.MemRange[Float32, math.prod(places)], 16]
        arrived: cute.struct.MemRange[cutlass.Int64, places[3]]

    storage = utils.SmemAllocator().allocate(Storage)
    sA = storage.a.get_tensor(layout_a.outer, swizzle=layout_a.inner)
    sB = storage.b.get_tensor(layout_b.outer, swizzle=layout_b.inner)
    sC = storage.c.get_tensor(layout_c.outer, swizzle=layout_c.inner)
    full, empty = storage.full.data_ptr(), storage.empty.data_ptr()

    if tidx == 0:
        for i in cutlass.range_constexpr(ab_stage):
            cute.arch.mbarrier_init(full + i, 1)
            cute.arch.mbarrier_init(empty + i, cluster_size * team_groups)
        for i in cutlass.range_constexpr(places[3]):
            cute.arch.mbarrier_init(storage.arrived.data_ptr() + i, 1)
        cute.arch.mbarrier_init_fence()
    if cutlass.const_expr(cluster_size > 1):
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
    else:
        cute.arch.sync_threads()

    gAs = [cute.local_tile(mA, (tile_m, tile_k), (None, None, None)) for mA in mAs]
    gBs = [cute.local_tile(mB, (tile_n, tile_k), (None, None, None)) for mB in mBs]
    along_m, share_a, shares_a = cute.make_layout(cluster_m), rank_n, cute.make_layout(cluster_n)
    if cutlass.const_expr(in_turn):
        share_a, shares_a = 0, cute.make_layout(1)
    tAs = [
        cpasync.tma_partition(tma, share_a, shares_a, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
        for tma, gA in zip(tmas_a, gAs)
    ]
    tBs = [
        cpasync.tma_partition(tma, rank_m, along_m, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2))
        for tma, gB in zip(tmas_b, gBs)
    ]
    k_tiles = cute.ceil_div(cute.ceil_div(k, tile_k), split_k)  # per part of k; TMA fills with zeros past the end

    epi_m, epi_n = tile_m // epi_tile[0], tile_n // epi_tile[1]
    room = storage.a if tile_m * num_a >= tile_n * num_b else storage.b
    sEs, tEs = [None for _ in extras], [None for _ in extras]
    for o in cutlass.range_constexpr(len(extras)):
        if cutlass.const_expr(tmas_e[o] is not None):
            layout_e = layouts_e[o]
            sEs[o] = room.get_tensor(layout_e.outer, swizzle=layout_e.inner, dtype=extras[o].element_type)
            gE = cute.local_tile(mEs[o], epi_tile, (None, None, None))
            tEs[o] = cpasync.tma_partition(
                tmas_e[o], 0, cute.make_layout(1), cute.group_modes(sEs[o], 0, 2), cute.group_modes(gE, 0, 2)
            )

    across_mn = (cute.ceil_div(m, tile_m * cluster_m), cute.ceil_div(n, tile_n * cluster_n))  # in clusters of tiles
    tiles = across_mn[0] * across_mn[1] * batches * split_k
    first, step = cute.arch.block_idx()[0] // cluster_size, cute.arch.grid_dim()[0] // cluster_size

    if warpgroup_idx == consumers:
        if cutlass.const_expr(consumers > 1):
            cute.arch.setmaxregister_decrease(40)
        if warp_idx == consumers * 4:
            # Multicast A to the blocks in this row of the cluster, B to the blocks in this column.
            every = (1 << cluster_size) - 1
            mask_a = cutlass.Int16(every // ((1 << cluster_m) - 1)) << rank_m
            mask_b = cutlass.Int16((1 << cluster_m) - 1) << (rank_n * cluster_m)
            stage_bytes = (num_a * tile_m + num_b * tile_n) * tile_k * a_dtype.width // 8
            stage, phase = cutlass.Int32(0), cutlass.Int32(1)  # phase 1: every stage begins empty
            for tile in cutlass.range(first, tiles, step, unroll=1):
                i, j, batch = tile_at(tile, across_mn, group, along_n)
                i, j = i * cluster_m + rank_m, j * cluster_n + rank_n
                k_first = batch // batches * k_tiles if cutlass.const_expr(split_k > 1) else 0
                batch = batch % batches if cutlass.const_expr(split_k > 1) else batch
                for k_tile in cutlass.range(k_tiles, unroll=1):
                    cute.arch.mbarrier_wait(empty + stage, phase)
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(full + stage, stage_bytes)
                    for o in cutlass.range_constexpr(num_a):
                        at = batch if cutlass.const_expr(cute.size(gAs[o], mode=[4]) > 1) else 0
                        at, slot = (i, k_first + k_tile, at), (stage * num_a + o,)
                        if cutlass.const_expr(in_turn):
                            if (k_first + k_tile) % cluster_n == rank_n:
                                load(tmas_a[o], tAs[o], at, slot, full + stage, mask_a if cluster_n > 1 else None)
                        else:
                            load(tmas_a[o], tAs[o], at, slot, full + stage, mask_a if cluster_n > 1 else None)
                    for o in cutlass.range_constexpr(num_b):
                        at = batch if cutlass.const_expr(cute.size(gBs[o], mode=[4]) > 1) else 0
                        at, slot = (j, k_first + k_tile, at), (stage * num_b + o,)
                        load(tmas_b[o], tBs[o], at, slot, full + stage, mask_b if cluster_m > 1 else None)
                    stage, phase = next_stage(stage, phase, ab_stage)
                for s in cutlass.range_constexpr(len(aux)):
                    step_bytes, pieces_here = aux[s]
                    cute.arch.mbarrier_wait(empty + stage, phase)
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(full + stage, step_bytes)
                    for slot in cutlass.range_constexpr(len(pieces_here)):
                        epi_i, epi_j, o = pieces_here[slot]
                        at = batch if cutlass.const_expr(cute.size(mEs[o], mode=[2]) > 1) else 0
                        at = i * epi_m + epi_i, j * epi_n + epi_j, at
                        load(tmas_e[o], tEs[o], at, (slot, stage), full + stage)
                    stage, phase = next_stage(stage, phase, ab_stage)
    else:
        if cutlass.const_expr(consumers > 1):
            cute.arch.setmaxregister_increase(232)
        team = warpgroup_idx // team_groups
        thread = tidx % team_threads
        thr_mma = mma.get_slice(thread)
        tCrA = mma.make_fragment_A(thr_mma.partition_A(sA))
        wide = storage.b.get_tensor(layout_wide.outer, swizzle=layout_wide.inner)
        tCrB = mma.make_fragment_B(thr_mma.partition_B(wide))
        accs, totals = (
            [cute.make_rmem_tensor(mma.partition_shape_C((tile_m, tile_n * fused_b)), Float32) for _ in range(count)]
            for count in (sums, promoted)
        )
        k_blocks = cute.size(tCrA, mode=[2])

        # The epilogue takes the accumulators in pieces of epi_tile, each as if a narrower wgmma had computed it.
        piece = epi_mma.partition_shape_C(epi_tile)
        pieces = [
            cute.make_tensor(acc.iterator, cute.make_layout((cute.size(piece), epi_n, fused_b, epi_m)))
            for acc in (*totals, *(accs[p] for p in range(promoted, sums)))
        ]
        cC = epi_mma.get_slice(thread).partition_C(cute.make_identity_tensor(epi_tile))
        if cutlass.const_expr(c_dtype.width == 16):
            to_shared = cute.make_tiled_copy_C(cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), c_dtype), epi_mma)
        else:
            to_shared = cute.make_tiled_copy_C(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), c_dtype), epi_mma)
        thr_to_shared, bSsC, bSgC = to_shared.get_slice(thread), None, None
        if cutlass.const_expr(tma_c is not None):
            gC = cute.local_tile(tC, epi_tile, (None, None, None))
            bSsC, bSgC = cpasync.tma_partition(
                tma_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), cute.group_modes(gC, 0, 2)
            )
        output = mC, thr_to_shared, thr_to_shared.partition_D(sC), tma_c, bSsC, bSgC
        shared_rows = None
        if cutlass.const_expr(in_turn):
            sParts = storage.exchanged.get_tensor(cute.make_layout(places))
            shared_rows = mParts, sParts, storage.arrived.data_ptr(), warp_idx, rank_m, rank_n

        from_shared = [
            cute.make_tiled_copy_C(
                cute.make_copy_atom(
                    warp.LdMatrix8x8x16bOp(False, 4) if x.element_type.width == 16 else cute.nvgpu.CopyUniversalOp(),
                    x.element_type,
                ),
                epi_mma,
            )
            for x in extras
        ]

        inputs, pipeline = (fp32_operands, extras, sEs, from_shared, sizes, aux), (full, empty, ab_stage, cluster_size)
        stored = cutlass.Int32(0)  # pieces this team has stored
        steps = k_tiles + (len(aux) if in_turn else 0)  # stages per tile, if teams take turns
        stage, phase = stage_after(cutlass.Int32(0), cutlass.Int32(0), team * steps, ab_stage)
        for tile in cutlass.range(first + team * step, tiles, step * teams, unroll=1):
            # Mainloops of the teams take turns: an mbarrier's phase is ambiguous to a waiter more than one round ahead.
            if cutlass.const_expr(teams > 1):
                if tile > first:
                    cute.arch.barrier(barrier_id=3 + team, number_of_threads=consumers * 128)
            before = stage
            for p in cutlass.range_constexpr(promoted):
                totals[p].fill(0.0)
            for k_tile in cutlass.range(k_tiles, unroll=1):
                cute.arch.mbarrier_wait(full + stage, phase)
                warpgroup.fence()
                for t in cutlass.range_constexpr(len(terms)):
                    for k_block in cutlass.range_constexpr(k_blocks):
                        if cutlass.const_expr(k_block > 0 or not opens(terms, t)):
                            mma.set(warpgroup.Field.ACCUMULATE, True)
                        elif cutlass.const_expr(t < promoted):
                            mma.set(warpgroup.Field.ACCUMULATE, False)
                        else:
                            mma.set(warpgroup.Field.ACCUMULATE, k_tile > 0)
                        rA = tCrA[None, None, k_block, stage * num_a + terms[t][0]]
                        rB = tCrB[None, None, k_block, stage * (num_b // fused_b) + terms[t][1]]
                        cute.gemm(mma, accs[terms[t][2]], rA, rB, accs[terms[t][2]])
                    if cutlass.const_expr(t + 1 == promoted):
                        warpgroup.commit_group()
                warpgroup.commit_group()
                warpgroup.wait_group(1)  # the previous step has read its stage; the sums to promote are complete
                for p in cutlass.range_constexpr(promoted):
                    totals[p].store(totals[p].load() + accs[p].load())
                if k_tile > 0 and tidx % 128 < cluster_size:  # one arrival for each block that fills the stage
                    cute.arch.mbarrier_arrive(empty + before, tidx % 128)
                before = stage
                stage, phase = next_stage(stage, phase, ab_stage)
            if cutlass.const_expr(teams > 1):
                if tile + step < tiles:
                    cute.arch.barrier_arrive(barrier_id=4 - team, number_of_threads=consumers * 128)
            warpgroup.wait_group(0)
            if tidx % 128 < cluster_size:
                cute.arch.mbarrier_arrive(empty + before, tidx % 128)
            if cutlass.const_expr(teams > 1 and not in_turn):  # skip the stages that the other team's tile uses
                stage, phase = stage_after(stage, phase, cutlass.Int32(k_tiles), ab_stage)

            i, j, batch = tile_at(tile, across_mn, group, along_n)
            row, column = (i * cluster_m + rank_m) * tile_m, (j * cluster_n + rank_n) * tile_n
            at, state, turn = (row, column, batch), (stored, stage, phase), (tile - first) // (step * teams)
            stored, stage, phase = tile_epilogue(
                pieces, at, state, turn, inputs, output, cC, shared_rows, pipeline, (team, thread), tiling, summed
            )
        if cutlass.const_expr(tma_c is not None):
            if thread < 32:
                cute.arch.cp_async_bulk_wait_group(0, read=True)
    if cutlass.const_expr(cluster_size > 1):
        cute.arch.cluster_arrive()  # no block exits while others may still signal its barriers or fill its stages
        cute.arch.cluster_wait()


@cute.jit
def tile_epilogue(
    pieces: tuple,
    at: tuple,
    state: tuple,
    turn: cutlass.Int32,
    inputs: tuple,
    output: tuple,
    cC: cute.Tensor,
    shared_rows: tuple,
    pipeline: tuple,
    place: tuple,
    tiling: cutlass.Constexpr,
    summed: cutlass.Constexpr,
):
    """The epilogue of a tile: computes and stores its results piece by piece. ``pieces``: its totals and sums, each
    (values, epi_n, fused_b, epi_m). ``at``: (row, column, batch). ``state``: (pieces stored, stage and phase of the
    pipeline); the new state is returned. ``turn``: number of earlier tiles of the team. ``place``: (team, thread of
    the team)."""
    (row, column, batch), (stored, stage, phase) = at, state
    fp32_operands, extras, sEs, from_shared, sizes, aux = inputs
    full, empty, ab_stage, cluster_size = pipeline
    ((m, n, k, batches), (_, _, tile_k), epi_tile, _, _), (_, promoted, fused_b, split_k) = tiling, summed
    k_part = cute.ceil_div(cute.ceil_div(k, tile_k), split_k) * tile_k
    c_dtype = output[0].element_type
    _, epi_n, _, epi_m = pieces[0].shape
    for epi_i in cutlass.range_constexpr(epi_m):
        for epi_j in cutlass.range_constexpr(epi_n):
            epi_row, epi_column = row + epi_i * epi_tile[0], column + epi_j * epi_tile[1]
            values = [of[None, epi_j, beside, epi_i].load() for of in pieces for beside in range(fused_b)]
            if cutlass.const_expr(len(fp32_operands) > 0):
                first, last, of = batch // batches * k_part, (batch // batches + 1) * k_part, batch % batches
                piece_at, span = (epi_row, epi_column, of), (first, cutlass.min(last, k))
                values = [
                    restore(values[p], values[promoted + p], fp32_operands[p], cC, *piece_at, *span, (m, n))
                    for p in range(promoted)
                ]
            loaded, drained = [], []
            for o in cutlass.range_constexpr(len(extras) if split_k == 1 else 0):
                if cutlass.const_expr(sEs[o] is None):
                    loaded.append(fetch(extras[o], cC, epi_row, epi_column, batch, (m, n), True))
                else:
                    slot, last = place_of((epi_i, epi_j, o), aux)
                    if cutlass.const_expr(slot == 0):
                        cute.arch.mbarrier_wait(full + stage, phase)
                    rE = read_aux(sEs[o], from_shared[o], place[1], slot, stage, cC)
                    loaded.append(rE.load().to(Float32))
                    if cutlass.const_expr(slot == last):
                        drained.append(stage)
                        stage, phase = next_stage(stage, phase, ab_stage)
            if cutlass.const_expr(split_k > 1):
                result = values[0]
            else:
                result = epilogue(*values, *loaded, *sizes)
            rC = cute.make_rmem_tensor(cute.size(cC), c_dtype)
            rC.store(result.to(c_dtype))
            piece_at, left = (epi_row, epi_column, batch), (drained, empty, cluster_size)
            stored = store_piece(rC, output, cC, piece_at, (m, n), epi_tile, stored, place, left)
    return stored, stage, phase


@cute.jit
def store_piece(
    rC: cute.Tensor,
    output: tuple,
    cC: cute.Tensor,
    at: tuple,
    shape_mn: cutlass.Constexpr,
    epi_tile: cutlass.Constexpr,
    stored: cutlass.Int32,
    place: tuple,
    left: tuple,
):
    """Stores a piece of results from registers, by TMA if possible. ``left``: stages to release after the team's
    barrier (stages, the pipeline's empty barriers, number of blocks that fill a stage). Returns how many pieces the
    team has ``stored``."""
    mC, thr_to_shared, tCsC, tma_c, bSsC, bSgC = output
    drained, empty, cluster_size = left
    (row, column, batch), (team, thread) = at, place
    if cutlass.const_expr(tma_c is not None):
        team_threads, tidx = epi_tile[0] * 2, cute.arch.thread_idx()[0]
        slot = team * EPI_STAGE + stored % EPI_STAGE
        if thread < 32:
            cute.arch.cp_async_bulk_wait_group(EPI_STAGE - 1, read=True)  # TMA has read the slot
        cute.arch.barrier(barrier_id=1 + team, number_of_threads=team_threads)
        for d in cutlass.range_constexpr(len(drained)):
            if tidx % 128 < cluster_size:
                cute.arch.mbarrier_arrive(empty + drained[d], tidx % 128)
        tCrC = thr_to_shared.retile(cute.make_tensor(rC.iterator, cute.make_layout(cC.shape)))
        cute.copy(thr_to_shared, tCrC, tCsC[None, None, None, slot])
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(barrier_id=1 + team, number_of_threads=team_threads)
        if thread < 32:
            if row < shape_mn[0] and column < shape_mn[1]:  # if C is one tile high, tiles past the edge would alias it
                dst = (row // epi_tile[0], column // epi_tile[1], batch)
                cute.copy(tma_c, bSsC[None, slot], bSgC[(None, *dst)])
            cute.arch.cp_async_bulk_commit_group()
        stored = stored + 1
    else:
        put(rC, mC, cC, row, column, batch, shape_mn)
    return stored


def opens(terms, number):
    """Whether term ``number`` is the first one that adds to its sum in a step along k."""
    return [term[2] for term in terms].index(terms[number][2]) == number

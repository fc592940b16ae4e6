"""The text of the warp-specialised kernel for Hopper's tensor cores, and of the launch that sets it up.

``$parameters``, ``$names`` and ``$tensors`` stand for the tensors that the epilogue reads, each with its own name.
A kernel may have several operands a side: each of ``terms`` (left, right, sum) adds a product to one of its sums.
What differs between one epilogue and another has a line of its own that :func:`written` fills: see ``tiles``.
"""

from collections.abc import Mapping

KERNEL = '''
@cute.kernel
def gemm_kernel(
    tmas_a: tuple,
    mAs: tuple,
    tmas_b: tuple,
    mBs: tuple,
    tma_c: cute.CopyAtom,
    tC: cute.Tensor,
    mC: cute.Tensor,
    exact: tuple,
    $parameters
    $workspace
    tmas_e: tuple,
    mEs: tuple,
    layouts_e: tuple,
    sheets: cutlass.Constexpr,
    mma: cute.TiledMma,
    epi_mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    layout_wide: cute.ComposedLayout,
    layout_c: cute.ComposedLayout,
    problem_mnkl: cutlass.Constexpr,
    terms: cutlass.Constexpr,
    promoted: cutlass.Constexpr,
    joined: cutlass.Constexpr,
    parts: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    epi_tile: cutlass.Constexpr,
    cluster_shape_mn: cutlass.Constexpr,
    teams: cutlass.Constexpr,
    group: cutlass.Constexpr,
    along_n: cutlass.Constexpr,
    dtypes: cutlass.Constexpr,
    by_tma: cutlass.Constexpr,
):
    """One warp loads tiles of A and B by TMA; the consumers' warpgroups multiply, in one team or in two that take tiles
    in turn. Blocks stay and take tile after tile.

    The first ``promoted`` terms have sums of their own, which are added to totals after each step along k: products of
    fp32 operands, which ``exact`` has, and of 8 bits. ``joined``: tiles of so many right operands lie side by side and
    are multiplied as one. ``parts``: k is cut in so many, batches of results to be added up. ``tmas_e`` are those of
    the epilogue's tensors that come as sheets, None for the others.
    """
    m, n, k, batches = problem_mnkl
    tile_m, tile_n, tile_k = tile_shape_mnk
    cluster_m, cluster_n = cluster_shape_mn
    cluster_size = cluster_m * cluster_n
    a_dtype, b_dtype, c_dtype = dtypes
    extras = (
        $tensors
    )
    lefts, rights, sums = len(mAs), len(mBs), 1 + max(term[2] for term in terms)
    ab_stage = cute.size(layout_a.outer, mode=[2]) // lefts
    epi_stage = cute.size(layout_c.outer, mode=[2]) // teams
    team_groups = epi_tile[0] // 64  # warpgroups of a team
    team_threads = team_groups * 128
    consumers = teams * team_groups

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
        $storage

    storage = utils.SmemAllocator().allocate(Storage)
    sA = storage.a.get_tensor(layout_a.outer, swizzle=layout_a.inner)
    sB = storage.b.get_tensor(layout_b.outer, swizzle=layout_b.inner)
    sC = storage.c.get_tensor(layout_c.outer, swizzle=layout_c.inner)
    full, empty = storage.full.data_ptr(), storage.empty.data_ptr()

    if tidx == 0:
        for i in cutlass.range_constexpr(ab_stage):
            cute.arch.mbarrier_init(full + i, 1)
            cute.arch.mbarrier_init(empty + i, cluster_size * team_groups)
        $barriers
        cute.arch.mbarrier_init_fence()
    if cutlass.const_expr(cluster_size > 1):
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
    else:
        cute.arch.sync_threads()

    gAs = [cute.local_tile(mA, (tile_m, tile_k), (None, None, None)) for mA in mAs]
    gBs = [cute.local_tile(mB, (tile_n, tile_k), (None, None, None)) for mB in mBs]
    along_m, across_n = cute.make_layout(cluster_m), cute.make_layout(cluster_n)
    tAs = [
        $part_of_a
        for tma, gA in zip(tmas_a, gAs)
    ]
    tBs = [
        cpasync.tma_partition(tma, rank_m, along_m, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2))
        for tma, gB in zip(tmas_b, gBs)
    ]
    k_tiles = cute.ceil_div(cute.ceil_div(k, tile_k), parts)  # of each part; what lies past k is zeros

    epi_m, epi_n = tile_m // epi_tile[0], tile_n // epi_tile[1]
    room = storage.a if tile_m * lefts >= tile_n * rights else storage.b
    sEs, tEs = [None for _ in extras], [None for _ in extras]
    for o in cutlass.range_constexpr(len(extras)):
        if cutlass.const_expr(tmas_e[o] is not None):
            layout_e = layouts_e[o]
            sEs[o] = room.get_tensor(layout_e.outer, swizzle=layout_e.inner, dtype=extras[o].element_type)
            gE = cute.local_tile(mEs[o], epi_tile, (None, None, None))
            tEs[o] = cpasync.tma_partition(
                tmas_e[o], 0, cute.make_layout(1), cute.group_modes(sEs[o], 0, 2), cute.group_modes(gE, 0, 2)
            )

    across_mn = (cute.ceil_div(m, tile_m * cluster_m), cute.ceil_div(n, tile_n * cluster_n))  # in clusters
    tiles = across_mn[0] * across_mn[1] * batches * parts
    first, step = cute.arch.block_idx()[0] // cluster_size, cute.arch.grid_dim()[0] // cluster_size

    if warpgroup_idx == consumers:
        if cutlass.const_expr(consumers > 1):
            cute.arch.setmaxregister_decrease(40)
        if warp_idx == consumers * 4:
            # A goes to the blocks of its row of the cluster, B to those of its column.
            every = (1 << cluster_size) - 1
            mask_a = cutlass.Int16(every // ((1 << cluster_m) - 1)) << rank_m
            mask_b = cutlass.Int16((1 << cluster_m) - 1) << (rank_n * cluster_m)
            stage_bytes = (lefts * tile_m + rights * tile_n) * tile_k * a_dtype.width // 8
            stage, phase = cutlass.Int32(0), cutlass.Int32(1)  # every stage begins empty
            for tile in cutlass.range(first, tiles, step, unroll=1):
                i, j, batch = tile_at(tile, across_mn, group, along_n)
                i, j = i * cluster_m + rank_m, j * cluster_n + rank_n
                k_first = batch // batches * k_tiles if cutlass.const_expr(parts > 1) else 0
                batch = batch % batches if cutlass.const_expr(parts > 1) else batch
                for k_tile in cutlass.range(k_tiles, unroll=1):
                    cute.arch.mbarrier_wait(empty + stage, phase)
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(full + stage, stage_bytes)
                    for o in cutlass.range_constexpr(lefts):
                        at = batch if cutlass.const_expr(cute.size(gAs[o], mode=[4]) > 1) else 0
                        $load_of_a
                    for o in cutlass.range_constexpr(rights):
                        at = batch if cutlass.const_expr(cute.size(gBs[o], mode=[4]) > 1) else 0
                        cute.copy(
                            tmas_b[o], tBs[o][1][None, j, k_first + k_tile, at], tBs[o][0][None, stage * rights + o],
                            tma_bar_ptr=full + stage, mcast_mask=mask_b if cutlass.const_expr(cluster_m > 1) else None,
                        )
                    stage, phase = next_stage(stage, phase, ab_stage)
                for s in cutlass.range_constexpr(len(sheets)):
                    step_bytes, pieces_here = sheets[s]
                    cute.arch.mbarrier_wait(empty + stage, phase)
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(full + stage, step_bytes)
                    for slot in cutlass.range_constexpr(len(pieces_here)):
                        epi_i, epi_j, o = pieces_here[slot]
                        at = batch if cutlass.const_expr(cute.size(mEs[o], mode=[2]) > 1) else 0
                        cute.copy(
                            tmas_e[o], tEs[o][1][None, i * epi_m + epi_i, j * epi_n + epi_j, at],
                            tEs[o][0][None, slot, stage], tma_bar_ptr=full + stage,
                        )
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
            [cute.make_rmem_tensor(mma.partition_shape_C((tile_m, tile_n * joined)), Float32) for _ in range(count)]
            for count in (sums, promoted)
        )
        k_blocks = cute.size(tCrA, mode=[2])

        # The epilogue takes the accumulators in pieces of epi_tile: as if a narrower wgmma had computed each.
        piece = epi_mma.partition_shape_C(epi_tile)
        pieces = [
            cute.make_tensor(acc.iterator, cute.make_layout((cute.size(piece), epi_n, joined, epi_m)))
            for acc in (*totals, *(accs[p] for p in range(promoted, sums)))
        ]
        cC = epi_mma.get_slice(thread).partition_C(cute.make_identity_tensor(epi_tile))
        if cutlass.const_expr(c_dtype.width == 16):
            to_shared = cute.make_tiled_copy_C(cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), c_dtype), epi_mma)
        else:
            to_shared = cute.make_tiled_copy_C(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), c_dtype), epi_mma)
        thr_to_shared = to_shared.get_slice(thread)
        tCsC = thr_to_shared.partition_D(sC)
        if cutlass.const_expr(by_tma):
            gC = cute.local_tile(tC, epi_tile, (None, None, None))
            bSsC, bSgC = cpasync.tma_partition(
                tma_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), cute.group_modes(gC, 0, 2)
            )

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

        stored = cutlass.Int32(0)  # pieces this team has stored
        stage, phase = stage_after(cutlass.Int32(0), cutlass.Int32(0), team * $steps, ab_stage)
        for tile in cutlass.range(first + team * step, tiles, step * teams, unroll=1):
            # Teams multiply in turn: a barrier's phase tells nothing to who is more than one round ahead of it.
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
                        cute.gemm(
                            mma, accs[terms[t][2]], tCrA[None, None, k_block, stage * lefts + terms[t][0]],
                            tCrB[None, None, k_block, stage * (rights // joined) + terms[t][1]], accs[terms[t][2]],
                        )
                    if cutlass.const_expr(t + 1 == promoted):
                        warpgroup.commit_group()
                warpgroup.commit_group()
                warpgroup.wait_group(1)  # the step before has read its stage; what is promoted is there
                for p in cutlass.range_constexpr(promoted):
                    totals[p].store(totals[p].load() + accs[p].load())
                if k_tile > 0 and tidx % 128 < cluster_size:  # one thread for each block that fills it
                    cute.arch.mbarrier_arrive(empty + before, tidx % 128)
                before = stage
                stage, phase = next_stage(stage, phase, ab_stage)
            if cutlass.const_expr(teams > 1):
                if tile + step < tiles:
                    cute.arch.barrier_arrive(barrier_id=4 - team, number_of_threads=consumers * 128)
            warpgroup.wait_group(0)
            if tidx % 128 < cluster_size:
                cute.arch.mbarrier_arrive(empty + before, tidx % 128)
            $skip

            i, j, batch = tile_at(tile, across_mn, group, along_n)
            row, column = (i * cluster_m + rank_m) * tile_m, (j * cluster_n + rank_n) * tile_n
            $epilogue
        if cutlass.const_expr(by_tma):
            if thread < 32:
                cute.arch.cp_async_bulk_wait_group(0, read=True)
    if cutlass.const_expr(cluster_size > 1):
        cute.arch.cluster_arrive()  # no block ends while another may still signal or fill it
        cute.arch.cluster_wait()
'''

LAUNCH = '''
@cute.jit
def multiply_by_wgmma(
    lefts: tuple,
    rights: tuple,
    mC: cute.Tensor,
    exact: tuple,
    $parameters
    $workspace
    stream: cuda.CUstream,
    k: cutlass.Constexpr,
    terms: cutlass.Constexpr,
    parts: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    cluster_shape_mn: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    schedule: cutlass.Constexpr,
    raster: cutlass.Constexpr,
    group: cutlass.Constexpr,
):
    tile_m, tile_n, tile_k = tile_shape_mnk
    cluster_m, cluster_n = cluster_shape_mn
    a_dtype, b_dtype, c_dtype = lefts[0].element_type, rights[0].element_type, mC.element_type
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    batches = batches // parts
    teams = 2 if schedule == "pingpong" else 1
    team_groups = 1 if teams == 2 else min(tile_m // 64, 2)
    $fit
    aligned = tma_view(mC, (1,)) if n * c_dtype.width % 128 == 0 else None  # TMA stores pieces of 16 bytes, all of each
    extras = (
        $tensors
    )
    alone = parts == 1 and teams == 1  # two teams hide such loads behind each other's steps
    $views
    if cutlass.const_expr(len([x for x in views if x is not None]) > ab_stage):  # a piece's sheets are there at once
        views = tuple(None for _ in extras)
    stage_bits = max(tile_m * len(lefts), tile_n * len(rights)) * tile_k * a_dtype.width
    epi_tile, slots, sheets = sheets_of(views, c_dtype, tile_shape_mnk, 64 * team_groups, stage_bits)
    major_a, major_b = utils.LayoutEnum.from_tensor(lefts[0]), utils.LayoutEnum.from_tensor(rights[0])
    joined = joined_of(lefts, rights, exact, tile_shape_mnk, major_b)
    if cutlass.const_expr(joined > 1):
        terms = ((0, 0, 0),)
    promoted = len(terms) if a_dtype.width == 8 else len(exact)
    mma, epi_mma = (
        sm90.make_trivial_tiled_mma(
            a_dtype, b_dtype, major_a.sm90_mma_major_mode(), major_b.sm90_mma_major_mode(), Float32,
            (team_groups, 1, 1), tiler_mn=(64, columns),
        )
        for columns in (tile_n * joined, epi_tile[1])
    )
    layout_a = sm90.make_smem_layout_a(major_a, tile_shape_mnk, a_dtype, ab_stage * len(lefts))
    layout_b = sm90.make_smem_layout_b(major_b, tile_shape_mnk, b_dtype, ab_stage * len(rights))
    wide_mnk = (tile_m, tile_n * joined, tile_k)
    layout_wide = sm90.make_smem_layout_b(major_b, wide_mnk, b_dtype, ab_stage * len(rights) // joined)
    layout_c = sm90.make_smem_layout_epi(c_dtype, utils.LayoutEnum.ROW_MAJOR, epi_tile, EPI_STAGE * teams)
    stage_a, stage_b, stage_c = (cute.slice_(layout, (None, None, 0)) for layout in (layout_a, layout_b, layout_c))
    by_tma_a = [
        $atom_of_a
        for x in lefts
    ]
    by_tma_b = [
        cpasync.make_tiled_tma_atom(load_op(cluster_m), x, stage_b, (tile_n, tile_k), num_multicast=cluster_m)
        for x in rights
    ]
    tma_c, tC = None, None
    if cutlass.const_expr(aligned is not None):
        tma_c, tC = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), aligned, stage_c, epi_tile)
    layouts_e = tuple(
        None if x is None else sheet_layout(x.element_type, epi_tile, slots, ab_stage, stage_bits) for x in views
    )
    by_tma_e = [
        (None, None)
        if x is None
        else cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileG2SOp(), x, cute.slice_(layout, (None, None, 0, 0)), epi_tile
        )
        for x, layout in zip(views, layouts_e)
    ]
    clusters = (
        cute.ceil_div(m, tile_m * cluster_m) * cute.ceil_div(n, tile_n * cluster_n) * batches * parts
    )
    gemm_kernel(
        tuple(atom for atom, _ in by_tma_a), tuple(x for _, x in by_tma_a),
        tuple(atom for atom, _ in by_tma_b), tuple(x for _, x in by_tma_b),
        tma_c, tC, mC, exact, $names$given tuple(atom for atom, _ in by_tma_e), tuple(x for _, x in by_tma_e),
        layouts_e, sheets, mma, epi_mma, layout_a, layout_b, layout_wide, layout_c, (m, n, k, batches),
        terms, promoted, joined, parts, tile_shape_mnk, epi_tile, cluster_shape_mn, teams, group, raster == "n",
        (a_dtype, b_dtype, c_dtype), aligned is not None,
    ).launch(
        grid=[min(clusters, RESIDENT[cluster_m * cluster_n]) * cluster_m * cluster_n, 1, 1],
        block=[(teams * team_groups + 1) * 128, 1, 1],
        cluster=[cluster_m * cluster_n, 1, 1],
        min_blocks_per_mp=1,  # so that ptxas knows how many registers there are for setmaxregister to move
        stream=stream,
    )


def joined_of(lefts, rights, exact, tile_shape_mnk, major_b):
    """How many tiles of right operands lie in shared memory as one that many times as wide would: those whose rows, or
    columns where these are dense, are whole ones of the widest swizzle."""
    _, tile_n, tile_k = tile_shape_mnk
    one_left = len(lefts) == 1 and not exact and len(rights) * tile_n <= 256
    row_bits, column_bits = (length * rights[0].element_type.width for length in (tile_k, tile_n))
    whole = column_bits % 1024 == 0 if major_b == utils.LayoutEnum.COL_MAJOR else row_bits == 1024
    return len(rights) if one_left and whole else 1


def load_op(blocks):
    """A TMA load for one block, or for several of a cluster at once."""
    return cpasync.CopyBulkTensorTileG2SMulticastOp() if blocks > 1 else cpasync.CopyBulkTensorTileG2SOp()
'''


def written(text: str, parts: Mapping[str, str]) -> str:
    """:data:`KERNEL` or :data:`LAUNCH` with ``parts`` in place of what names them, lines or words."""
    lines: list[str] = []
    for line in text.splitlines():
        name, indent = line.strip(), line[: len(line) - len(line.lstrip())]
        part = parts[name].strip("\n").splitlines() if name in parts else [name]
        lines += [indent + entry if entry else "" for entry in part]
    found = "\n".join(lines) + "\n"
    for word in ("$given", "$steps"):
        found = found.replace(word, parts.get(word, ""))
    return found

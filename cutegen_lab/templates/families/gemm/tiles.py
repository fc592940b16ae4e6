"""The warp-specialised kernel with an epilogue for each tile by itself, as text."""

from cutegen_lab.templates.families.gemm import wgmma

# A piece of results, in registers, on its way out. By TMA when the whole team has met: sheets may be let go of then.
STORE = """
if cutlass.const_expr(by_tma):
    slot = team * epi_stage + stored % epi_stage
    if thread < 32:
        cute.arch.cp_async_bulk_wait_group(epi_stage - 1, read=True)  # what was there has left
    cute.arch.barrier(barrier_id=1 + team, number_of_threads=team_threads)
    $drained
    tCrC = thr_to_shared.retile(cute.make_tensor(rC.iterator, cute.make_layout(piece)))
    cute.copy(to_shared, tCrC, tCsC[None, None, None, slot])
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.barrier(barrier_id=1 + team, number_of_threads=team_threads)
    if thread < 32:
        if epi_row < m and epi_column < n:  # where C is one tile high, every other is that one too
            at = (epi_row // epi_tile[0], epi_column // epi_tile[1], batch)
            cute.copy(tma_c, bSsC[None, slot], bSgC[(None, *at)])
        cute.arch.cp_async_bulk_commit_group()
    stored = stored + 1
else:
    put(rC, mC, cC, epi_row, epi_column, batch, (m, n))
"""
_DRAINED = """
for d in cutlass.range_constexpr(len(drained)):
    if tidx % 128 < cluster_size:
        cute.arch.mbarrier_arrive(empty + drained[d], tidx % 128)
"""
_EPILOGUE = """
for epi_i in cutlass.range_constexpr(epi_m):
    for epi_j in cutlass.range_constexpr(epi_n):
        epi_row, epi_column = row + epi_i * epi_tile[0], column + epi_j * epi_tile[1]
        values = [of[None, epi_j, beside, epi_i].load() for of in pieces for beside in range(joined)]
        if cutlass.const_expr(len(exact) > 0):
            values = [
                restored(
                    values[p], values[promoted + p], exact[p], cC, epi_row, epi_column, batch % batches,
                    batch // batches * k_tiles * tile_k,
                    cutlass.min((batch // batches + 1) * k_tiles * tile_k, k), (m, n),
                )
                for p in range(promoted)
            ]
        loaded, drained = [], []
        for o in cutlass.range_constexpr(len(extras) if parts == 1 else 0):
            if cutlass.const_expr(tmas_e[o] is None):
                loaded.append(fetch(extras[o], cC, epi_row, epi_column, batch, (m, n), True))
            else:
                place, last = place_of((epi_i, epi_j, o), sheets)
                if cutlass.const_expr(place == 0):
                    cute.arch.mbarrier_wait(full + stage, phase)
                thr_from_shared = from_shared[o].get_slice(thread)
                tCsE = thr_from_shared.partition_S(sEs[o])
                rE = cute.make_rmem_tensor(cute.size(piece), extras[o].element_type)
                tCrE = thr_from_shared.retile(cute.make_tensor(rE.iterator, cute.make_layout(piece)))
                cute.copy(from_shared[o], tCsE[None, None, None, place, stage], tCrE)
                loaded.append(rE.load().to(Float32))
                if cutlass.const_expr(place == last):
                    drained.append(stage)
                    stage, phase = next_stage(stage, phase, ab_stage)
        if cutlass.const_expr(parts > 1):
            result = values[0]
        else:
            result = epilogue(*values, *loaded, $sizes)
        rC = cute.make_rmem_tensor(cute.size(piece), c_dtype)
        rC.store(result.to(c_dtype))
        $store
"""
_LOAD_OF_A = """
cute.copy(
    tmas_a[o], tAs[o][1][None, i, k_first + k_tile, at], tAs[o][0][None, stage * lefts + o],
    tma_bar_ptr=full + stage, mcast_mask=mask_a if cutlass.const_expr(cluster_n > 1) else None,
)
"""
_SKIP = """
if cutlass.const_expr(teams > 1):
    stage, phase = stage_after(stage, phase, cutlass.Int32(k_tiles), ab_stage)
"""
_PARTS = {
    "$epilogue": wgmma.written(_EPILOGUE, {"$store": wgmma.written(STORE, {"$drained": _DRAINED})}),
    "$part_of_a": "cpasync.tma_partition(tma, rank_n, across_n, cute.group_modes(sA, 0, 2), "
    "cute.group_modes(gA, 0, 2))",
    "$load_of_a": _LOAD_OF_A,
    "$steps": "k_tiles",
    "$skip": _SKIP,
    "$storage": "", "$barriers": "", "$workspace": "", "$given": "",
    "$fit": "ab_stage = min(stages, stages_that_fit(tile_shape_mnk, teams * team_groups))",
    "$views": "views = tuple(sheet_view(x, aligned) if alone else None for x in extras)",
    "$atom_of_a": "cpasync.make_tiled_tma_atom(load_op(cluster_n), x, stage_a, (tile_m, tile_k), "
    "num_multicast=cluster_n)",
}  # fmt: skip
KERNEL = wgmma.written(wgmma.KERNEL, _PARTS)
LAUNCH = wgmma.written(wgmma.LAUNCH, _PARTS)

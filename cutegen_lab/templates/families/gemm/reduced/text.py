"""The warp-specialised kernel with an epilogue that reduces rows, as text.

A thread of a quad has every fourth pair of a row's accumulators, in registers, where they stay: each step reads them,
keeps what the next one needs in their place, and folds its terms over the tile, over the quad, and, where a row is
spread over a cluster, over its blocks. There a warp needs none but the warps with its rows in other blocks: each sends
its values to all of them by ``st.async``, and waits for theirs at a barrier of its own (PTX ISA, "st.async" and
"mbarrier"), so that no other warp waits. Values go to one of two places in turn: a warp may be one exchange ahead of
another.

Blocks that share a row load A's tiles for each other, taking turns, since a tile of A need not divide into as many
parts.
"""

from cutegen_lab.templates.families.gemm import tiles, wgmma

_EPILOGUE = """
whole = n <= tile_n * cluster_n  # a row lies in the tiles of a cluster
exchanged = whole and cluster_n > 1
ragged = n % tile_n > 0 or (whole and n < tile_n * cluster_n)
lines = 2 * epi_m  # rows of a tile that a thread has a part of
sParts, met_at = storage.parts.get_tensor(layout_parts), storage.arrived.data_ptr()
met = (tile - first) // (step * teams) * len(STEPS)  # exchanges before
registers = [cute.make_tensor(of.iterator, cute.make_layout((2, 2, epi_tile[1] // 8, epi_n, epi_m))) for of in pieces]
found = [[] for _ in range(lines)]  # what each row's reductions found
for s in cutlass.range_constexpr(len(STEPS)):
    work, reads, held, folds, neutrals = STEPS[s]
    parts_here = [[Float32(neutral) for neutral in neutrals] for _ in range(lines)]
    extent = Float32(n if cutlass.const_expr(whole or s == 0) else cutlass.min(n - column, tile_n))
    for epi_i in cutlass.range_constexpr(epi_m):
        for epi_j in cutlass.range_constexpr(epi_n):
            epi_row, epi_column = row + epi_i * epi_tile[0], column + epi_j * epi_tile[1]
            ahead, drained, loaded = [None for _ in extras], [], []
            for o in cutlass.range_constexpr(len(extras) if s == 0 else 0):
                if cutlass.const_expr(tmas_e[o] is not None):
                    place, last = place_of((epi_i, epi_j, o), sheets)
                    if cutlass.const_expr(place == 0):
                        cute.arch.mbarrier_wait(full + stage, phase)
                    thr_from_shared = from_shared[o].get_slice(thread)
                    tCsE = thr_from_shared.partition_S(sEs[o])
                    rE = cute.make_rmem_tensor((2, 2, epi_tile[1] // 8), extras[o].element_type)
                    tCrE = thr_from_shared.retile(cute.make_tensor(rE.iterator, cute.make_layout(piece)))
                    cute.copy(from_shared[o], tCsE[None, None, None, place, stage], tCrE)
                    ahead[o] = rE
                    if cutlass.const_expr(place == last):
                        drained.append(stage)
                        stage, phase = next_stage(stage, phase, ab_stage)
            if cutlass.const_expr(len(drained) > 0):
                cute.arch.barrier(barrier_id=1 + team, number_of_threads=team_threads)
                for d in cutlass.range_constexpr(len(drained)):
                    if tidx % 128 < cluster_size:
                        cute.arch.mbarrier_arrive(empty + drained[d], tidx % 128)
            for half in cutlass.range_constexpr(2):
                line, cRow = 2 * epi_i + half, cC[(None, half, None), 0, 0]
                values = [row_of(registers[v], half, epi_j, epi_i) for v in range(held)]
                loaded = read(extras, reads, loaded, ahead, half, cRow, epi_row, epi_column, batch, (m, n))
                kept, folded = work(*values, *found[line], *loaded, $sizes, extent)
                for v in cutlass.range_constexpr(len(kept)):
                    put_row(kept[v], registers[v], half, epi_j, epi_i)
                for f in cutlass.range_constexpr(len(folded)):
                    part = fold(folded[f], folds[f], neutrals[f], cRow, epi_column, n, ragged)
                    parts_here[line][f] = folds[f](parts_here[line][f], part)
    if cutlass.const_expr(s == 0 and teams > 1):
        stage, phase = stage_after(stage, phase, cutlass.Int32(k_tiles + len(sheets)), ab_stage)  # the other team's
    for line in cutlass.range_constexpr(lines):
        for f in cutlass.range_constexpr(len(folds)):
            parts_here[line][f] = cute.arch.warp_reduction(parts_here[line][f], folds[f], threads_in_group=4)
    if cutlass.const_expr(exchanged):
        mine = warp_idx * 2 + (met + s) % 2
        sMine = sParts[None, None, None, mine]
        exchange(
            as_tensor(parts_here), sMine, met_at + mine, (met + s) // 2 % 2, rank_m, rank_n, cluster_shape_mn
        )
        parts_here = from_blocks(sMine, folds, lines)
        cute.arch.sync_warp()  # all have read before any of them sends again
    for line in cutlass.range_constexpr(lines):
        found[line] = found[line] + parts_here[line]
if cutlass.const_expr(not whole):
    if thread % 4 == 0 and column < n:
        for line in cutlass.range_constexpr(lines):
            at_row = row + line // 2 * epi_tile[0] + cC[(0, line % 2, 0), 0, 0][0]
            if at_row < m:
                for f in cutlass.range_constexpr(len(found[line])):
                    mParts[at_row, column // tile_n, batch, f] = found[line][f]
$finish
"""
_ROWS = """
if cutlass.const_expr(whole):
    work, reads, held = FINISH
    for epi_i in cutlass.range_constexpr(epi_m):
        for epi_j in cutlass.range_constexpr(epi_n):
            epi_row, epi_column = row + epi_i * epi_tile[0], column + epi_j * epi_tile[1]
            rC, loaded = cute.make_rmem_tensor((2, 2, epi_tile[1] // 8, 1, 1), c_dtype), []
            for half in cutlass.range_constexpr(2):
                values = [row_of(registers[v], half, epi_j, epi_i) for v in range(held)]
                cRow = cC[(None, half, None), 0, 0]
                loaded = read(extras, reads, loaded, None, half, cRow, epi_row, epi_column, batch, (m, n))
                result = work(*values, *found[2 * epi_i + half], *loaded, $sizes, Float32(n))
                put_row(result.to(c_dtype), rC, half, 0, 0)
            $store
"""
_NUMBERS = """
if cutlass.const_expr(whole):
    work, reads, held = FINISH
    if thread % 4 == 0 and column == 0:
        for line in cutlass.range_constexpr(lines):
            at_row = row + line // 2 * epi_tile[0] + cC[(0, line % 2, 0), 0, 0][0]
            if at_row < m:
                others = [Float32(extras[o][at_row, 0, batch]) for o, along in reads]
                mC[at_row, 0, batch] = mC.element_type(work(*found[line], *others, $sizes, Float32(n)))
"""
_LOAD_OF_A = """
if (k_first + k_tile) % cluster_n == rank_n:
    cute.copy(
        tmas_a[o], tAs[o][1][None, i, k_first + k_tile, at], tAs[o][0][None, stage * lefts + o],
        tma_bar_ptr=full + stage, mcast_mask=mask_a if cutlass.const_expr(cluster_n > 1) else None,
    )
"""
_STORAGE = """
parts: cute.struct.Align[cute.struct.MemRange[Float32, cute.cosize(layout_parts)], 16]
arrived: cute.struct.MemRange[cutlass.Int64, cute.size(layout_parts, mode=[3])]
"""
_BARRIERS = """
for i in cutlass.range_constexpr(cute.size(layout_parts, mode=[3])):
    cute.arch.mbarrier_init(storage.arrived.data_ptr() + i, 1)
"""
_FIT = """
places = exchange_shape(tile_m, cluster_n, teams, team_groups)
layout_parts = cute.make_layout(places)
ab_stage = min(stages, stages_that_fit(tile_shape_mnk, teams * team_groups, math.prod(places) * 4))
"""
_VIEWS = """
first_read = [o for o, along in STEPS[0][1]]  # what later steps read again, they read from memory
views = tuple(sheet_view(x, mC) if o in first_read else None for o, x in enumerate(extras))
"""

DEVICE = '''
def row_of(registers, half, epi_j, epi_i):
    """A thread's part of one of its rows, from one piece of the accumulators."""
    rRow = registers[None, half, None, epi_j, epi_i]
    return rRow.load().reshape((cute.size(rRow),))


def put_row(values, registers, half, epi_j, epi_i):
    rRow = registers[None, half, None, epi_j, epi_i]
    rRow.store(values.reshape(rRow.shape))


def read(extras, reads, before, ahead, half, cRow, row, column, batch, shape_mn):
    """What ``reads`` names (a tensor, and does it differ along the row) of a thread's part of one of its rows. What all
    rows share was read ``before``, for the first; sheets are there ``ahead``."""
    found = []
    for at, (o, along) in enumerate(reads):
        mX = extras[o]
        if half > 0 and mX.stride[0] == 0:
            found.append(before[at])
        elif ahead is not None and ahead[o] is not None:
            rRow = ahead[o][None, half, None]
            found.append(rRow.load().reshape((cute.size(rRow),)).to(Float32))
        elif along:
            found.append(fetch(mX, cRow, row, column, batch, shape_mn, True))
        else:
            found.append(Float32(mX[cutlass.min(row + cRow[0][0], shape_mn[0] - 1), 0, batch]))
    return found


def fold(values, op, neutral, cRow, column, n, ragged):
    """Reduces a thread's part of a row, pairwise; where it is ``ragged``, columns past its end count for nothing."""
    rValue = cute.make_rmem_tensor(values.shape, Float32)
    rValue.store(values)
    parts = [rValue[e] for e in range(cute.size(rValue))]
    if ragged:
        parts = [within(column + cRow[e][1] < n, part, Float32(neutral)) for e, part in enumerate(parts)]
    return pairwise(parts, op)


def as_tensor(parts):
    """(values, rows of a thread), in registers."""
    rPart = cute.make_rmem_tensor((len(parts[0]), len(parts)), Float32)
    for line, values in enumerate(parts):
        for f, value in enumerate(values):
            rPart[f, line] = value
    return rPart


@cute.jit
def exchange(
    rPart: cute.Tensor,
    sPlace: cute.Tensor,
    arrived: cute.Pointer,
    phase: cutlass.Int32,
    rank_m: cutlass.Int32,
    rank_n: cutlass.Int32,
    cluster_shape_mn: cutlass.Constexpr,
):
    """A warp sends its rows' values (values, rows of a thread) to each block that its rows are spread over, and waits
    for theirs in ``sPlace`` (blocks, values, rows of a warp). The lanes of a quad send to a block each."""
    cluster_m, cluster_n = cluster_shape_mn
    lane = cute.arch.lane_idx()
    values, lines = rPart.shape
    bits = cute.recast_tensor(rPart, cutlass.Int32)  # the store takes 32-bit integers
    with cute.arch.elect_one():
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, cluster_n * values * lines * 8 * 4)
    for turn in cutlass.range_constexpr((cluster_n + 3) // 4):
        block = turn * 4 + lane % 4
        if block < cluster_n:
            for line in cutlass.range_constexpr(lines):
                for f in cutlass.range_constexpr(values):
                    there = cute.domain_offset((rank_n, f, lane // 4 + 8 * line), sPlace).iterator
                    cute.arch.store_async_dsmem(there, bits[f, line], arrived, rank_m + cluster_m * block)
    cute.arch.mbarrier_wait(arrived, phase)


def from_blocks(sPlace, folds, lines):
    """What all blocks sent of each of a thread's rows, folded, always in one order."""
    lane = cute.arch.lane_idx()
    return [
        [pairwise(values_of(sPlace[None, f, lane // 4 + 8 * line]), op) for f, op in enumerate(folds)]
        for line in range(lines)
    ]


def values_of(sX):
    rX = cute.make_fragment_like(sX)
    cute.autovec_copy(sX, rX)
    return [rX[i] for i in range(cute.size(rX))]
'''


def kernel(written: bool) -> str:
    """``written``: the result has rows, not one number for each."""
    rows = wgmma.written(_ROWS, {"$store": wgmma.written(tiles.STORE, {"$drained": ""})})
    parts = {
        "$epilogue": wgmma.written(_EPILOGUE, {"$finish": rows if written else _NUMBERS}),
        "$part_of_a": "cpasync.tma_partition(tma, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), "
        "cute.group_modes(gA, 0, 2))",
        "$load_of_a": _LOAD_OF_A,
        "$steps": "(k_tiles + len(sheets))",
        "$skip": "",
        "$storage": _STORAGE,
        "$barriers": _BARRIERS,
        "$workspace": "mParts: cute.Tensor,\nlayout_parts: cute.Layout,",
        "$given": "",
    }
    return wgmma.written(wgmma.KERNEL, parts)


LAUNCH = wgmma.written(
    wgmma.LAUNCH,
    {
        "$workspace": "mParts: cute.Tensor,",
        "$given": " mParts, layout_parts,",
        "$fit": _FIT,
        "$views": _VIEWS,
        "$atom_of_a": "cpasync.make_tiled_tma_atom(load_op(cluster_n), x, stage_a, (tile_m, tile_k))",
    },
)

"""Matrix products on Hopper's tensor cores whose epilogue reduces rows.

A row's accumulators stay in registers, every fourth pair in each thread of a quad. A step reads them, overwrites them
with what the next step needs, and reduces its terms over the tile, over the quad and, if a cluster shares the row, over
the cluster's blocks. A warp exchanges values only with the warps of other blocks that have the same rows. It sends its
values to each of them by ``st.async``, and waits for theirs at an mbarrier of its own (PTX ISA, "st.async" and
"mbarrier"), so that no other warp waits. Buffers are doubled, since a warp may be one exchange ahead of another.

Blocks that share a row load the tiles of A for each other in turn, a whole tile each, since a tile of A need not divide
into as many parts as there are blocks. If rows are wider than a cluster's tiles, a second kernel combines the row
partials of the tiles.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.aux_loads import place_of, read_aux
from cutegen_lab.templates.kernels.device.epilogue_access import fetch
from cutegen_lab.templates.kernels.device.math import plus
from cutegen_lab.templates.kernels.device.moments import apart, centre_of
from cutegen_lab.templates.kernels.device.online_softmax import finite, rescale
from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait
from cutegen_lab.templates.kernels.device.row_reduce import pairwise, values_of, within
from cutegen_lab.templates.kernels.device.tile_walk import next_stage, stage_after
from cutegen_lab.templates.kernels.device.tma_copies import copied_row_by_row, scratch_size, uneven
from cutegen_lab.templates.kernels.device.tma_views import tma_views
from cutegen_lab.templates.kernels.device.views import view
from cutegen_lab.templates.kernels.gemm_sm90 import multiply_by_wgmma, store_piece
from cutegen_lab.templates.kernels.limits.gemm_sm90 import exchange_shape, why_not_rows

__all__ = [  # names that generated modules use
    "apart",
    "as_tma",
    "centre_of",
    "combine",
    "finite",
    "multiply_and_reduce",
    "parts_view",
    "rescale",
    "scratch_size",
    "tma_views",
    "uneven",
    "view",
    "why_not_rows",
    "write_numbers",
]
OVERRIDES = ("tile_epilogue",)


@cute.jit
def multiply_and_reduce(
    mAs: tuple,
    mBs: tuple,
    mC: cute.Tensor,
    extras: tuple,
    mParts: cute.Tensor,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    k: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    cluster_shape_mn: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    schedule: cutlass.Constexpr,
    raster: cutlass.Constexpr,
    group: cutlass.Constexpr,
):
    """``mParts`` (m, tiles, batch, values): row partials of each tile, for rows wider than the tiles of a cluster."""
    values, teams = max(len(step[3]) for step in STEPS), 2 if schedule == "pingpong" else 1
    team_groups = 1 if teams == 2 else min(tile_shape_mnk[0] // 64, 2)
    places = exchange_shape(tile_shape_mnk[0], cluster_shape_mn[1], values, teams, team_groups)
    ahead = [o for o, along in STEPS[0][1]]  # tensors of the first step; later steps read from memory
    tiles, order = (tile_shape_mnk, cluster_shape_mn), (stages, schedule, raster, group)
    multiply_by_wgmma(
        mAs, mBs, mC, (), extras, stream, sizes, k, ((0, 0, 0),), 1, *tiles, *order, mParts, (places, ahead)
    )


def parts_view(parts, m, tiles, batches, count):
    """Workspace ``parts`` as (row, tile along n, batch, value), with ``count`` values."""
    return view(parts.iterator, (m, tiles, batches, count), (tiles, 1, m * tiles, batches * m * tiles))


def as_tma(x, copy, stream):
    """``x`` in a layout that TMA can address: ``x`` itself, or its copy if ``copy`` has room for one."""
    return copied_row_by_row(x, copy, stream) if cute.size(copy) > 1 else x


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
    """The epilogue of a tile with sums ``pieces``: reduces its rows, then stores results or row partials."""
    (row, column, batch), (stored, stage, phase), (team, thread) = at, state, place
    _, extras, sEs, from_shared, sizes, aux = inputs
    full, empty, ab_stage, cluster_size = pipeline
    mParts, sParts, met_at, warp_idx, *rank_mn = shared_rows
    (m, n, k, _), (_, tile_n, tile_k), epi_tile, cluster_shape_mn, teams = tiling
    k_tiles, cluster_n = cute.ceil_div(k, tile_k), cluster_shape_mn[1]
    tidx, _, _ = cute.arch.thread_idx()
    _, epi_n, _, epi_m = pieces[0].shape
    whole = n <= tile_n * cluster_n  # each row lies in the tiles of one cluster
    exchanged = whole and cluster_n > 1
    ragged = n % tile_n > 0 or (whole and n < tile_n * cluster_n)
    lines = 2 * epi_m  # rows of the tile per thread; a quad shares each
    met = turn * len(STEPS)  # number of exchanges for the team's earlier tiles
    registers = [
        cute.make_tensor(of.iterator, cute.make_layout((2, 2, epi_tile[1] // 8, epi_n, epi_m))) for of in pieces
    ]
    found = [[] for _ in range(lines)]  # results of the reductions so far, per row
    for s in cutlass.range_constexpr(len(STEPS)):
        work, reads, held, folds, neutrals = STEPS[s]
        parts_here = [[Float32(neutral) for neutral in neutrals] for _ in range(lines)]
        extent = Float32(n if cutlass.const_expr(whole or s == 0) else cutlass.min(n - column, tile_n))
        for epi_i in cutlass.range_constexpr(epi_m):
            for epi_j in cutlass.range_constexpr(epi_n):
                epi_row, epi_column = row + epi_i * epi_tile[0], column + epi_j * epi_tile[1]
                ahead, drained, loaded = [None for _ in extras], [], []
                for o in cutlass.range_constexpr(len(extras) if s == 0 else 0):
                    if cutlass.const_expr(sEs[o] is not None):
                        slot, last = place_of((epi_i, epi_j, o), aux)
                        if cutlass.const_expr(slot == 0):
                            cute.arch.mbarrier_wait(full + stage, phase)
                        rE = read_aux(sEs[o], from_shared[o], thread, slot, stage, cC)
                        ahead[o] = cute.make_tensor(rE.iterator, cute.make_layout((2, 2, epi_tile[1] // 8)))
                        if cutlass.const_expr(slot == last):
                            drained.append(stage)
                            stage, phase = next_stage(stage, phase, ab_stage)
                if cutlass.const_expr(len(drained) > 0):
                    cute.arch.barrier(barrier_id=1 + team, number_of_threads=epi_tile[0] * 2)
                    for d in cutlass.range_constexpr(len(drained)):
                        if tidx % 128 < cluster_size:
                            cute.arch.mbarrier_arrive(empty + drained[d], tidx % 128)
                for half in cutlass.range_constexpr(2):
                    line, cRow = 2 * epi_i + half, cC[(None, half, None), 0, 0]
                    values = [row_of(registers[v], half, epi_j, epi_i) for v in range(held)]
                    loaded = read(extras, reads, loaded, ahead, half, cRow, epi_row, epi_column, batch, (m, n))
                    kept, folded = work(*values, *found[line], *loaded, *sizes, extent)
                    for v in cutlass.range_constexpr(len(kept)):
                        put_row(kept[v], registers[v], half, epi_j, epi_i)
                    for f in cutlass.range_constexpr(len(folded)):
                        part = fold_row(folded[f], folds[f], neutrals[f], cRow, epi_column, n, ragged)
                        parts_here[line][f] = folds[f](parts_here[line][f], part)
        if cutlass.const_expr(s == 0 and teams > 1):  # skip the stages that the other team's tile uses
            stage, phase = stage_after(stage, phase, cutlass.Int32(k_tiles + len(aux)), ab_stage)
        for line in cutlass.range_constexpr(lines):
            for f in cutlass.range_constexpr(len(folds)):
                parts_here[line][f] = cute.arch.warp_reduction(parts_here[line][f], folds[f], threads_in_group=4)
        if cutlass.const_expr(exchanged):
            buffer = warp_idx * 2 + (met + s) % 2
            sPlace = sParts[None, None, None, buffer]
            exchange_quads(
                as_tensor(parts_here), sPlace, met_at + buffer, (met + s) // 2 % 2, rank_mn, cluster_shape_mn
            )
            parts_here = from_blocks(sPlace, folds, lines)
            cute.arch.sync_warp()  # every lane has read the buffer before one sends again
        for line in cutlass.range_constexpr(lines):
            found[line] = found[line] + parts_here[line]
    if cutlass.const_expr(not whole):
        if thread % 4 == 0 and column < n:
            for line in cutlass.range_constexpr(lines):
                at_row = row + line // 2 * epi_tile[0] + cC[(0, line % 2, 0), 0, 0][0]
                if at_row < m:
                    for f in cutlass.range_constexpr(len(found[line])):
                        mParts[at_row, column // tile_n, batch, f] = found[line][f]
    else:
        write = FINISH[3]
        stored = write(registers, found, extras, output, cC, at, stored, place, sizes, (m, n), epi_tile)
    return stored, stage, phase


@cute.jit
def write_rows(
    registers: tuple,
    found: tuple,
    extras: tuple,
    output: tuple,
    cC: cute.Tensor,
    at: tuple,
    stored: cutlass.Int32,
    place: tuple,
    sizes: cutlass.Constexpr,
    shape_mn: cutlass.Constexpr,
    epi_tile: cutlass.Constexpr,
):
    """Finishes the rows of a tile and stores them. Returns the number of pieces that the team has stored so far."""
    (work, reads, held, _), (row, column, batch), c_dtype = FINISH, at, output[0].element_type
    *_, epi_n, epi_m = registers[0].shape
    for epi_i in cutlass.range_constexpr(epi_m):
        for epi_j in cutlass.range_constexpr(epi_n):
            epi_row, epi_column = row + epi_i * epi_tile[0], column + epi_j * epi_tile[1]
            rC, loaded = cute.make_rmem_tensor((2, 2, epi_tile[1] // 8, 1, 1), c_dtype), []
            for half in cutlass.range_constexpr(2):
                values = [row_of(registers[v], half, epi_j, epi_i) for v in range(held)]
                cRow = cC[(None, half, None), 0, 0]
                loaded = read(extras, reads, loaded, None, half, cRow, epi_row, epi_column, batch, shape_mn)
                result = work(*values, *found[2 * epi_i + half], *loaded, *sizes, Float32(shape_mn[1]))
                put_row(result.to(c_dtype), rC, half, 0, 0)
            piece_at = epi_row, epi_column, batch
            stored = store_piece(rC, output, cC, piece_at, shape_mn, epi_tile, stored, place, ((), None, 0))
    return stored


@cute.jit
def write_numbers(
    registers: tuple,
    found: tuple,
    extras: tuple,
    output: tuple,
    cC: cute.Tensor,
    at: tuple,
    stored: cutlass.Int32,
    place: tuple,
    sizes: cutlass.Constexpr,
    shape_mn: cutlass.Constexpr,
    epi_tile: cutlass.Constexpr,
):
    """Stores one number per row, by the first thread of the row's quad in the first tile."""
    (work, reads, _, _), (row, column, batch), mC = FINISH, at, output[0]
    if place[1] % 4 == 0 and column == 0:
        for line in cutlass.range_constexpr(len(found)):
            at_row = row + line // 2 * epi_tile[0] + cC[(0, line % 2, 0), 0, 0][0]
            if at_row < shape_mn[0]:
                others = [Float32(extras[o][at_row, 0, batch]) for o, along in reads]
                mC[at_row, 0, batch] = mC.element_type(work(*found[line], *others, *sizes, Float32(shape_mn[1])))
    return stored


def row_of(registers, half, epi_j, epi_i):
    """A thread's part of one of its rows, from one piece of the accumulators, as a vector."""
    rRow = registers[None, half, None, epi_j, epi_i]
    return rRow.load().reshape((cute.size(rRow),))


def put_row(values, registers, half, epi_j, epi_i):
    rRow = registers[None, half, None, epi_j, epi_i]
    rRow.store(values.reshape(rRow.shape))


def read(extras, reads, before, ahead, half, cRow, row, column, batch, shape_mn):
    """Loads the tensors in ``reads`` (index, whether it varies along the row) for a thread's part of one of its rows.
    Tensors that all rows share were loaded ``before``, for the first row. Auxiliary loads are in ``ahead``."""
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


def fold_row(values, op, neutral, cRow, column, n, ragged):
    """Reduces a thread's part of a row pairwise. ``ragged``: columns past the row's end count as ``neutral``."""
    rValue = cute.make_rmem_tensor(values.shape, Float32)
    rValue.store(values)
    parts = [rValue[e] for e in range(cute.size(rValue))]
    if ragged:
        parts = [within(column + cRow[e][1] < n, part, Float32(neutral)) for e, part in enumerate(parts)]
    return pairwise(parts, op)


def as_tensor(parts):
    """``parts`` as a register tensor (values, rows of a thread)."""
    rPart = cute.make_rmem_tensor((len(parts[0]), len(parts)), Float32)
    for line, values in enumerate(parts):
        for f, value in enumerate(values):
            rPart[f, line] = value
    return rPart


@cute.jit
def exchange_quads(
    rPart: cute.Tensor,
    sPlace: cute.Tensor,
    arrived: cute.Pointer,
    phase: cutlass.Int32,
    rank_mn: tuple,
    cluster_shape_mn: cutlass.Constexpr,
):
    """Sends a warp's values (values, rows of a thread) to each block that shares its rows, and waits until theirs are
    in ``sPlace`` (blocks, values, rows of a warp). The lanes of a quad send to different blocks."""
    (rank_m, rank_n), (cluster_m, cluster_n) = rank_mn, cluster_shape_mn
    lane = cute.arch.lane_idx()
    values, lines = rPart.shape
    bits = cute.recast_tensor(rPart, cutlass.Int32)  # st.async stores 32-bit integers
    with cute.arch.elect_one():
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, cluster_n * values * lines * 8 * 4)
    for turn in cutlass.range_constexpr((cluster_n + 3) // 4):
        block = turn * 4 + lane % 4
        if block < cluster_n:
            for line in cutlass.range_constexpr(lines):
                for f in cutlass.range_constexpr(values):
                    dst = cute.domain_offset((rank_n, f, lane // 4 + 8 * line), sPlace).iterator
                    cute.arch.store_async_dsmem(dst, bits[f, line], arrived, rank_m + cluster_m * block)
    cute.arch.mbarrier_wait(arrived, phase)


def from_blocks(sPlace, folds, lines):
    """Reduces what all blocks sent for each of a thread's rows, always in the same order."""
    lane = cute.arch.lane_idx()
    return [
        [pairwise(values_of(sPlace[None, f, lane // 4 + 8 * line]), op) for f, op in enumerate(folds)]
        for line in range(lines)
    ]


@cute.jit
def combine(
    mParts: cute.Tensor,
    mC: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    tile_n: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
):
    """Combines the row partials of the tiles, if rows are wider than the tiles of a cluster."""
    rows, n = cute.size(mC, mode=[0]) * cute.size(mC, mode=[2]), cute.size(mC, mode=[1])
    if cutlass.const_expr(n > tile_n * cluster_n):
        combine_kernel(mParts, mC, extras, sizes, tile_n).launch(
            grid=[cute.ceil_div(rows, 8), 1, 1], block=[256, 1, 1], stream=stream, use_pdl=OVERLAP and overlapping()
        )


@cute.kernel
def combine_kernel(
    mParts: cute.Tensor,
    mC: cute.Tensor,
    extras: tuple,
    sizes: cutlass.Constexpr,
    tile_n: cutlass.Constexpr,
):
    """One warp per row of ``mParts`` (m, tiles, batch, values): combines the row partials and finishes the row."""
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    index, lane = bidx * 8 + tidx // 32, tidx % 32
    inside = cutlass.min(index, m * batches - 1)
    row, batch = inside % m, inside // m
    found = ()
    for walk in cutlass.range_constexpr(len(FROM_PARTS)):
        found = (*found, *fold_parts(mParts, (row, batch, lane), found, (n, tile_n), FROM_PARTS[walk]))
    work, reads, _, _ = FINISH
    if lane == 0 and index < m * batches:
        loaded = [Float32(extras[o][row, 0, batch]) for o, along in reads]
        mC[row, 0, batch] = mC.element_type(work(*found, *loaded, *sizes, Float32(n)))


@cute.jit
def fold_parts(
    mParts: cute.Tensor,
    at: tuple,
    found: tuple,
    shape_n: cutlass.Constexpr,
    walk: cutlass.Constexpr,
):
    """A warp reduces the terms of ``walk`` over the tiles of a row. ``found``: results of earlier passes."""
    (row, batch, lane), (n, tile_n), (terms, reads, ops) = at, shape_n, walk
    values = [Float32(neutral) for _, neutral in ops]
    for t in cutlass.range(lane, cute.size(mParts, mode=[1]), 32, unroll=2):
        parts = [mParts[row, t, batch, f] for f in reads]
        columns = Float32(cutlass.min(n - t * tile_n, tile_n))
        taken = terms(*parts, *found, columns, Float32(n))
        values = [op(value, term) for value, term, (op, _) in zip(values, taken, ops)]
    return [cute.arch.warp_reduction(value, op) for value, (op, _) in zip(values, ops)]


@cute.jit
def from_parts_0(total_of_tile, columns, n):
    """Placeholder, replaced in a generated module: terms to reduce, from a tile's partials of ``columns`` of a row."""
    return (total_of_tile,)


@cute.jit
def step_0(x, n):
    """Placeholder, replaced in a generated module: returns (values of a row to keep, terms to reduce)."""
    return (x,), (x,)


@cute.jit
def finish(x, total, n):
    """Placeholder, replaced in a generated module: the results of a row."""
    return x / total


# Per step: its function, the tensors it reads (index, whether it varies along the row), the number of values of a row
# that registers hold for it, the operators that reduce its terms, and their neutral elements. After the last step: the
# function, the tensors it reads, the number of values of a row that it takes, and the function that writes.
STEPS = ((step_0, (), 1, (plus,), (0.0,)),)
FINISH = (finish, (), 1, write_rows)
# Per pass over a row's partials: the function for the terms of a tile, the indices of the partials that it takes, and
# for each term (operator, neutral element).
FROM_PARTS = ((from_parts_0, (0,), ((plus, 0.0),)),)

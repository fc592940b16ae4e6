"""y = x @ w.T in f16 or bf16 by mma.sync and ldmatrix, any sizes and row pitches: cp.async fills a ring of stages.

Beyond the last row the last one is read again, since its products are not stored; beyond the end of k are zeros.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp

TUNABLE = {
    "tile_m": (32, 64, 128), "tile_n": (32, 64, 128), "stages": (2, 3, 4), "warps_m": (1, 2, 4), "warps_n": (2, 4)
}  # fmt: skip
TILE_K = 64
PITCH = TILE_K + 8  # of a row in shared memory: eight rows that ldmatrix reads lie in different banks


def constraints(config, workload, device):
    rows = config["tile_m"] + config["tile_n"]
    divides = config["tile_m"] % (16 * config["warps_m"]) == 0 and config["tile_n"] % (16 * config["warps_n"]) == 0
    return divides and config["stages"] * rows * PITCH * 2 <= 96 * 1024  # what every GPU has


def my_rows(gX, tile, tile_rows, threads):
    """The rows (vec, k // vec) of gX (vec, k // vec, rows) that a thread copies, addressed once, before the loop."""
    tidx, _, _ = cute.arch.thread_idx()
    across = TILE_K // gX.shape[0]  # threads for a row; threads is a multiple of it, and tile_rows of threads // across
    starts = [tile * tile_rows + i * (threads // across) for i in range(tile_rows * across // threads)]
    return tuple(gX[None, None, cutlass.min(at + tidx // across, gX.shape[2] - 1)] for at in starts)


@cute.jit
def load_tile(rows: tuple, sX: cute.Tensor, k_tile: cutlass.Int32):
    """Starts to copy tile k_tile of the rows to sX (tile rows, TILE_K)."""
    tidx, _, _ = cute.arch.thread_idx()
    vec, vectors = rows[0].shape
    dtype, across, step = sX.element_type, TILE_K // vec, sX.shape[0] // len(rows)
    r, c = tidx // across, tidx % across
    sV = cute.make_tensor(sX.iterator, cute.make_layout((vec, across, sX.shape[0]), stride=(1, vec, PITCH)))
    column = k_tile * across + c
    for i in cutlass.range_constexpr(len(rows)):
        if vectors % across == 0 or column < vectors:  # the first part is known at compile time
            if cutlass.const_expr(vec > 1):  # cp.async copies 4, 8 or 16 bytes
                atom = cute.make_copy_atom(cpasync.CopyG2SOp(), dtype, num_bits_per_copy=vec * dtype.width)
                cute.copy(atom, rows[i][None, column], sV[None, c, r + i * step])
            else:
                sV[0, c, r + i * step] = rows[i][0, column]
        else:
            sV[None, c, r + i * step].fill(0.0)


@cute.kernel
def gemm_kernel(
    gA: cute.Tensor,
    gB: cute.Tensor,
    gC: cute.Tensor,
    mma: cute.TiledMma,
    tile_m: cutlass.Constexpr,
    tile_n: cutlass.Constexpr,
    stages: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    i, j, _ = cute.arch.block_idx()
    dtype, threads = gA.element_type, cute.size(mma)
    k_tiles = (gA.shape[0] * gA.shape[1] + TILE_K - 1) // TILE_K

    smem = cutlass.utils.SmemAllocator()
    layout_a = cute.make_layout((tile_m, TILE_K, stages), stride=(PITCH, 1, tile_m * PITCH))
    layout_b = cute.make_layout((tile_n, TILE_K, stages), stride=(PITCH, 1, tile_n * PITCH))
    sA = smem.allocate_tensor(dtype, layout_a, 16)
    sB = smem.allocate_tensor(dtype, layout_b, 16)
    rows_a, rows_b = my_rows(gA, i, tile_m, threads), my_rows(gB, j, tile_n, threads)
    for s in cutlass.range_constexpr(stages - 1):
        if cutlass.const_expr(s < k_tiles):
            load_tile(rows_a, sA[None, None, s], s)
            load_tile(rows_b, sB[None, None, s], s)
        cute.arch.cp_async_commit_group()  # empty groups too: the wait below counts groups

    thr_mma = mma.get_slice(tidx)
    rA = mma.make_fragment_A(thr_mma.partition_A(sA[None, None, 0]))
    rB = mma.make_fragment_B(thr_mma.partition_B(sB[None, None, 0]))
    acc = cute.make_rmem_tensor(mma.partition_shape_C((tile_m, tile_n)), cutlass.Float32)
    acc.fill(0.0)
    ldsm = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), dtype)  # True for an operand that lies along M or N
    read_a, read_b = cute.make_tiled_copy_A(ldsm, mma), cute.make_tiled_copy_B(ldsm, mma)
    tAs, tBs = read_a.get_slice(tidx).partition_S(sA), read_b.get_slice(tidx).partition_S(sB)
    tAr, tBr = read_a.retile(rA), read_b.retile(rB)

    slot, free = cutlass.Int32(0), cutlass.Int32(stages - 1)
    for k_tile in cutlass.range(k_tiles, unroll=1):
        cute.arch.cp_async_wait_group(stages - 2)
        cute.arch.sync_threads()  # this tile is here, and all have read the stage that is filled next
        if k_tile + stages - 1 < k_tiles:
            load_tile(rows_a, sA[None, None, free], k_tile + stages - 1)
            load_tile(rows_b, sB[None, None, free], k_tile + stages - 1)
        cute.arch.cp_async_commit_group()
        for b in cutlass.range_constexpr(TILE_K // 16):
            cute.copy(read_a, tAs[None, None, b, slot], tAr[None, None, b])
            cute.copy(read_b, tBs[None, None, b, slot], tBr[None, None, b])
            cute.gemm(mma, acc, rA[None, None, b], rB[None, None, b], acc)
        free = slot
        slot = slot + 1
        if slot == stages:
            slot = 0

    # The result goes through shared memory, so that threads store whole vectors side by side.
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    pitch = tile_n + 8  # fits in sA: tile_n is at most 128
    rC = cute.make_rmem_tensor(acc.layout, gC.element_type)
    rC.store(acc.load().to(gC.element_type))
    sC = cute.make_tensor(sA.iterator, cute.make_layout((tile_m, tile_n), stride=(pitch, 1)))
    cute.autovec_copy(rC, thr_mma.partition_C(sC))
    cute.arch.sync_threads()
    vec, vectors, m = gC.shape
    across = tile_n // vec
    sV = cute.make_tensor(sA.iterator, cute.make_layout((vec, across, tile_m), stride=(1, vec, pitch)))
    for e in cutlass.range_constexpr((tile_m * across + threads - 1) // threads):
        r, c = (tidx + e * threads) // across, (tidx + e * threads) % across
        if r < tile_m and i * tile_m + r < m and j * across + c < vectors:
            cute.autovec_copy(sV[None, c, r], gC[None, j * across + c, i * tile_m + r])


def in_vectors(x):
    """(vec, columns // vec, rows) of x (rows, columns): 16 bytes at most, of which a row is a multiple."""
    rows, columns = x.shape
    vec = math.gcd(columns, 8)
    return cute.make_tensor(x.iterator, cute.make_layout((vec, columns // vec, rows), stride=(1, vec, columns)))


@cute.jit
def launch(
    x: cute.Tensor,
    w: cute.Tensor,
    y: cute.Tensor,
    stream: cuda.CUstream,
    tile_m: cutlass.Constexpr = 128,
    tile_n: cutlass.Constexpr = 64,
    stages: cutlass.Constexpr = 3,
    warps_m: cutlass.Constexpr = 4,
    warps_n: cutlass.Constexpr = 2,
):
    m, n = y.shape
    op = warp.MmaF16BF16Op(x.element_type, cutlass.Float32, (16, 8, 16))
    permutation = (16 * warps_m, 16 * warps_n, 16)  # 16 columns a warp: one ldmatrix loads operands for two of them
    mma = cute.make_tiled_mma(op, cute.make_layout((warps_m, warps_n, 1)), permutation_mnk=permutation)
    gemm_kernel(in_vectors(x), in_vectors(w), in_vectors(y), mma, tile_m, tile_n, stages).launch(
        grid=[(m + tile_m - 1) // tile_m, (n + tile_n - 1) // tile_n, 1],
        block=[32 * warps_m * warps_n, 1, 1],
        stream=stream,
    )

"""Causal attention of q, k, v (batch, heads, length, d), f16 or bf16: both products by mma.sync, softmax on the way.

A block takes some queries of one head and walks over tiles of keys. A warp has 16 queries: a thread holds parts of two
rows of scores, four threads share a row. The next tile of keys and values is copied while this one is multiplied.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp

TUNABLE = {"warps": (2, 4, 8), "tile_n": (32, 64, 128)}


def constraints(config, workload, device):
    d = max(spec.shape[-1] for spec in workload.inputs)
    rows = 16 * config["warps"] + 4 * config["tile_n"]  # of q, and of two buffers of k and v
    return d <= 256 and rows * (d + 24) * 2 <= 220 * 1024


@cute.jit
def load_tile(gX: cute.Tensor, sX: cute.Tensor, first: cutlass.Int32, threads: cutlass.Constexpr):
    """Starts to copy rows of gX (vec, d // vec, rows), from row first, to sX (rows, width); zeros beyond both ends."""
    tidx, _, _ = cute.arch.thread_idx()
    vec, vectors, rows = gX.shape
    tile_rows, width = sX.shape
    across = width // vec
    sV = cute.make_tensor(sX.iterator, cute.make_layout((vec, across, tile_rows), stride=(1, vec, sX.stride[0])))
    for i in cutlass.range_constexpr((tile_rows * across + threads - 1) // threads):
        r, c = (tidx + i * threads) // across, (tidx + i * threads) % across
        if r < tile_rows:
            if first + r < rows and c < vectors:
                if cutlass.const_expr(vec > 1):  # cp.async copies 4, 8 or 16 bytes
                    bits = vec * gX.element_type.width
                    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), gX.element_type, num_bits_per_copy=bits)
                    cute.copy(atom, gX[None, c, first + r], sV[None, c, r])
                else:
                    sV[0, c, r] = gX[0, c, first + r]
            else:
                sV[None, c, r].fill(0.0)


@cute.kernel
def attention_kernel(
    mQ: cute.Tensor,
    mK: cute.Tensor,
    mV: cute.Tensor,
    mO: cute.Tensor,
    mma: cute.TiledMma,
    width: cutlass.Constexpr,
    scale: cutlass.Constexpr,
    warps: cutlass.Constexpr,
    tile_n: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, head, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    tile_m, threads, dtype = 16 * warps, 32 * warps, mQ.element_type
    queries, keys = mQ.shape[2], mK.shape[2]
    start = (blocks - 1 - bidx) * tile_m  # the last queries see most keys: they go first
    gQ, gK, gV, gO = (x[None, None, None, head] for x in (mQ, mK, mV, mO))

    # Rows in shared memory are 16 bytes longer than their content: eight rows that ldmatrix reads are in other banks.
    smem = cutlass.utils.SmemAllocator()
    pitch = width + 8
    sQ = smem.allocate_tensor(dtype, cute.make_layout((tile_m, width), stride=(pitch, 1)), 16)
    layout = cute.make_layout((tile_n, width, 2), stride=(pitch, 1, tile_n * pitch))
    sK = smem.allocate_tensor(dtype, layout, 16)
    sV = smem.allocate_tensor(dtype, layout, 16)
    sVt = cute.make_tensor(sV.iterator, cute.select(layout, mode=[1, 0, 2]))  # (N, K) of the second product

    thr_mma = mma.get_slice(tidx)
    ldsm = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), dtype)
    ldsm_t = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), dtype)
    read_q, read_k = cute.make_tiled_copy_A(ldsm, mma), cute.make_tiled_copy_B(ldsm, mma)
    read_v = cute.make_tiled_copy_B(ldsm_t, mma)
    tQs, tKs, tVs = (read.get_slice(tidx).partition_S(s) for read, s in ((read_q, sQ), (read_k, sK), (read_v, sVt)))
    rQ = mma.make_fragment_A(thr_mma.partition_A(sQ))
    rK = mma.make_fragment_B(thr_mma.partition_B(sK[None, None, 0]))
    rV = mma.make_fragment_B(thr_mma.partition_B(sVt[None, None, 0]))
    rP = cute.make_rmem_tensor(mma.partition_shape_A((tile_m, tile_n)), dtype)
    acc_s = cute.make_rmem_tensor(mma.partition_shape_C((tile_m, tile_n)), cutlass.Float32)
    acc_o = cute.make_rmem_tensor(mma.partition_shape_C((tile_m, width)), cutlass.Float32)
    s = cute.make_tensor(acc_s.iterator, cute.make_layout((2, (2, tile_n // 8)), stride=(2, (1, 4))))  # [row, column]
    o = cute.make_tensor(acc_o.iterator, cute.make_layout((2, (2, width // 8)), stride=(2, (1, 4))))
    coords = thr_mma.partition_C(cute.make_identity_tensor((tile_m, tile_n)))
    peaks = cute.make_rmem_tensor(cute.make_layout(2), cutlass.Float32)
    sums = cute.make_rmem_tensor(cute.make_layout(2), cutlass.Float32)  # each thread's part
    peaks.fill(-float("inf"))
    sums.fill(0.0)
    acc_o.fill(0.0)

    load_tile(gQ, sQ, start, threads)
    load_tile(gK, sK[None, None, 0], 0, threads)
    load_tile(gV, sV[None, None, 0], 0, threads)
    cute.arch.cp_async_commit_group()
    tiles = (cutlass.min(start + tile_m, keys) + tile_n - 1) // tile_n  # the others are hidden from every query
    for j in cutlass.range(tiles, unroll=1):
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()  # tile j is here, and all have read the other buffer
        if j + 1 < tiles:
            load_tile(gK, sK[None, None, (j + 1) % 2], (j + 1) * tile_n, threads)
            load_tile(gV, sV[None, None, (j + 1) % 2], (j + 1) * tile_n, threads)
        cute.arch.cp_async_commit_group()

        if j == 0:
            cute.copy(read_q, tQs, read_q.retile(rQ))
        acc_s.fill(0.0)
        for b in cutlass.range_constexpr(width // 16):
            cute.copy(read_k, tKs[None, None, b, j % 2], read_k.retile(rK)[None, None, b])
            cute.gemm(mma, acc_s, rQ[None, None, b], rK[None, None, b], acc_s)
        if (j + 1) * tile_n > cutlass.min(start + 1, keys):  # some query does not see every key of the tile
            for e in cutlass.range_constexpr(cute.size(acc_s)):
                end = cutlass.min(start + coords[e][0] + 1, keys)  # of the keys that this query sees
                acc_s[e] = acc_s[e] if j * tile_n + coords[e][1] < end else -cutlass.Float32.inf

        for r in cutlass.range_constexpr(2):
            peak = peaks[r]
            for c in cutlass.range_constexpr(tile_n // 4):
                peak = cute.arch.fmax(peak, s[r, c])  # drops a NaN, which exp2 brings back
            peak = cute.arch.warp_reduction(peak, cute.arch.fmax, threads_in_group=4)
            base = peak if peak > -cutlass.Float32.inf else cutlass.Float32(0.0)  # nothing seen yet: -inf - -inf is NaN
            rescale = cute.math.exp2((peaks[r] - base) * scale, fastmath=True)
            total = sums[r] * rescale
            for c in cutlass.range_constexpr(tile_n // 4):
                s[r, c] = cute.math.exp2((s[r, c] - base) * scale, fastmath=True)
                total = total + s[r, c]
            for c in cutlass.range_constexpr(width // 4):
                o[r, c] = o[r, c] * rescale
            peaks[r] = peak
            sums[r] = total
        # A thread's accumulators of two blocks of 8 columns are, in this order, its operand A of 16 columns.
        rP.store(acc_s.load().to(dtype).reshape(rP.shape))
        for b in cutlass.range_constexpr(tile_n // 16):
            cute.copy(read_v, tVs[None, None, b, j % 2], read_v.retile(rV)[None, None, b])
            cute.gemm(mma, acc_o, rP[None, None, b], rV[None, None, b], acc_o)

    for r in cutlass.range_constexpr(2):
        total = cute.arch.warp_reduction(sums[r], lambda a, b: a + b, threads_in_group=4)
        inverse = cutlass.Float32(0.0) if total == 0.0 else 1.0 / total  # a row without any key is 0, as in PyTorch
        for c in cutlass.range_constexpr(width // 4):
            o[r, c] = o[r, c] * inverse
    rO = cute.make_rmem_tensor(acc_o.layout, dtype)
    rO.store(acc_o.load().to(dtype))
    cute.autovec_copy(rO, thr_mma.partition_C(sQ))  # a warp writes only rows that it alone has read
    cute.arch.sync_threads()
    vec, vectors, _ = gO.shape
    sO = cute.make_tensor(sQ.iterator, cute.make_layout((vec, vectors, tile_m), stride=(1, vec, pitch)))
    for i in cutlass.range_constexpr((tile_m * vectors + threads - 1) // threads):
        r, c = (tidx + i * threads) // vectors, (tidx + i * threads) % vectors
        if r < tile_m and start + r < queries:
            cute.autovec_copy(sO[None, c, r], gO[None, c, start + r])


def in_vectors(x):
    """(vec, d // vec, length, heads) of x (batch, heads, length, d): 16 bytes at most, of which d is a multiple."""
    batch, heads, length, d = x.shape
    vec = math.gcd(d, 8)
    layout = cute.make_layout((vec, d // vec, length, batch * heads), stride=(1, vec, d, length * d))
    return cute.make_tensor(x.iterator, layout)


@cute.jit
def launch(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    out: cute.Tensor,
    stream: cuda.CUstream,
    warps: cutlass.Constexpr = 4,
    tile_n: cutlass.Constexpr = 64,
):
    batch, heads, queries, d = q.shape
    width = (max(d, v.shape[3]) + 15) // 16 * 16  # zeros beyond d change no sum
    op = warp.MmaF16BF16Op(q.element_type, cutlass.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((warps, 1, 1)), permutation_mnk=(16 * warps, 16, 16))
    scale = math.log2(math.e) * d**-0.5
    mQ, mK, mV, mO = in_vectors(q), in_vectors(k), in_vectors(v), in_vectors(out)
    attention_kernel(mQ, mK, mV, mO, mma, width, scale, warps, tile_n).launch(
        grid=[(queries + 16 * warps - 1) // (16 * warps), batch * heads, 1], block=[32 * warps, 1, 1], stream=stream
    )

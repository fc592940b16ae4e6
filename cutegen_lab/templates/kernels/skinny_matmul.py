"""Matrix products with few rows on one side: one pass over the other side's matrix.

The rows of the large operand are split over blocks, k over a block's threads and a cluster's blocks. If the large
operand is contiguous along k, threads load vectors along k, otherwise vectors of neighbouring rows. In both cases a
thread takes ``rows`` rows of the large operand, over its own part of k, directly from memory to registers. One or two
rows of the small operand, and fp32 operands, are multiplied by FMAs. With more 16-bit rows, FMAs would be the
bottleneck, so the tensor cores are used. The loaded vectors serve as fragments: any assignment of k to threads is
correct if it is the same for both operands.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
from cutlass import Float32
from cutlass.cute.nvgpu import warp

from cutegen_lab.templates.kernels.device.epilogue_access import fetch, put
from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait
from cutegen_lab.templates.kernels.device.vectors import widest
from cutegen_lab.templates.kernels.device.views import view  # noqa: F401 - for launch
from cutegen_lab.templates.kernels.limits.skinny_matmul import MANY, MAX_SUMS, MOST


def epilogue(acc):
    """Placeholder, replaced in a generated module: a function of one fp32 vector per pair, ``extras`` and ``sizes``."""
    return acc


@cute.jit
def multiply_few(
    mAs: tuple,
    mBs: tuple,
    mC: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    rows: cutlass.Constexpr,
    loads: cutlass.Constexpr,
    cluster_k: cutlass.Constexpr,
):
    """``mC`` (m, n, batch): the epilogue of products ``pairs`` of ``mAs`` (m, k, batch) and ``mBs`` (n, k, batch). The
    small operands are the side with fewer rows."""
    if cutlass.const_expr(cute.size(mC, mode=[0]) <= cute.size(mC, mode=[1])):
        extras = tuple(turned(x) for x in extras)
        launch_few(mAs, mBs, turned(mC), extras, stream, sizes, pairs, threads, rows, loads, cluster_k)
    else:
        pairs = tuple((right, left) for left, right in pairs)
        launch_few(mBs, mAs, mC, extras, stream, sizes, pairs, threads, rows, loads, cluster_k)


@cute.jit
def launch_few(
    smalls: tuple,
    larges: tuple,
    mC: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    rows: cutlass.Constexpr,
    loads: cutlass.Constexpr,
    cluster_k: cutlass.Constexpr,
):
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    along_k = any(x.stride[0] != 1 for x in larges)
    if cutlass.const_expr(not along_k):
        rows = math.gcd(rows, *[widest(x, 0) for x in larges])
    forms = tuple(widest(larges[large], 1) if along_k else depth(smalls[small]) for small, large in pairs)
    tile = cute.ceil_div(n, cute.ceil_div(n, MOST))
    dtypes = {x.element_type for x in (*smalls, *larges)}
    by_mma = tile >= MANY and all(vec % 4 == 0 for vec in forms) and threads[0] % 8 == 0 and threads[1] % 4 == 0
    mma = None
    if cutlass.const_expr(by_mma and len(dtypes) == 1 and dtypes <= {cutlass.BFloat16, cutlass.Float16}):
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(smalls[0].element_type, Float32, (16, 8, 16)), (1, 1, 1))
    else:
        tile = min(tile, max(MAX_SUMS // rows, 1))
    blocks = cute.ceil_div(m, rows * threads[0]) * cute.ceil_div(n, tile) * batches
    skinny_kernel(
        smalls, larges, mC, extras, sizes, pairs, forms, tile, rows, threads, along_k, loads, cluster_k, mma
    ).launch(
        grid=[blocks * cluster_k, 1, 1],
        block=[threads[0] * threads[1], 1, 1],
        cluster=[cluster_k, 1, 1] if cutlass.const_expr(cluster_k > 1) else None,
        min_blocks_per_mp=1,  # lets ptxas spend registers on loads in flight
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


def depth(x):
    """Vector width along k if a thread's loads go across rows."""
    return math.gcd(4, cute.size(x, mode=[1]))


def turned(x):
    """``x`` (m, n, batch) transposed to (n, m, batch)."""
    return cute.make_tensor(x.iterator, cute.select(x.layout, mode=[1, 0, 2]))


@cute.kernel
def skinny_kernel(
    smalls: tuple,
    larges: tuple,
    mC: cute.Tensor,
    extras: tuple,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
    forms: cutlass.Constexpr,
    tile: cutlass.Constexpr,
    rows: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    along_k: cutlass.Constexpr,
    loads: cutlass.Constexpr,
    cluster_k: cutlass.Constexpr,
    mma: cute.TiledMma,
):
    """``mC``: (rows of the large operand, rows of the small one, batch). ``threads`` (n, k): neighbouring threads read
    neighbours in memory, in k (``along_k``) or in rows; with ``mma``, a warp takes 8 rows and 4 vectors of k.
    ``forms``: vector width along k for each pair."""
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    m, n = cute.size(mC, mode=[0]), cute.size(mC, mode=[1])
    threads_n, threads_k = threads
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    rank = 0
    if cutlass.const_expr(cluster_k > 1):
        rank = cute.arch.block_idx_in_cluster()
    lane, warp = tidx % 32, tidx // 32
    if cutlass.const_expr(mma is not None):
        at_n, at_k = warp % (threads_n // 8) * 8 + lane // 4, warp // (threads_n // 8) * 4 + lane % 4
    elif cutlass.const_expr(along_k):
        at_n, at_k = tidx // threads_k, tidx % threads_k
    else:
        at_n, at_k = tidx % threads_n, tidx // threads_n
    span, high, wide = rows * threads_n, cute.ceil_div(m, rows * threads_n), cute.ceil_div(n, tile)
    block = bidx // cluster_k
    row, column, batch = block % high * span, block // high % wide * tile, block // (high * wide)

    lanes_k = 4 if mma is not None else min(threads_k, 32) if along_k else max(32 // threads_n, 1)  # sharing rows
    smem = utils.SmemAllocator()
    warps = cute.make_layout((span, tile, threads_k // lanes_k, len(pairs)))
    sPart = smem.allocate_tensor(Float32, warps, 16)
    if cutlass.const_expr(cluster_k > 1):
        sSent = smem.allocate_tensor(Float32, cute.make_layout((span, tile, cluster_k, len(pairs))), 16)
        arrived = smem.allocate_array(cutlass.Int64, num_elems=1)
        if tidx == 0:
            cute.arch.mbarrier_init(arrived, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()

    acc = cute.make_rmem_tensor(cute.make_layout((rows, 4 if mma is not None else tile)), Float32)
    for p in cutlass.range_constexpr(len(pairs)):
        small, large, vec = smalls[pairs[p][0]], larges[pairs[p][1]], forms[p]
        vectors = cute.size(large, mode=[1]) // vec
        stride = threads_k * cluster_k  # vectors of k that are loaded at the same time
        whole, rest = vectors // (stride * loads), vectors % (stride * loads)
        first, apart, last = rank * threads_k + at_k, stride, cute.ceil_div(rest, stride)
        if cutlass.const_expr(mma is not None):  # a warp's loads are adjacent in memory
            first, apart, last = (rank * threads_k + at_k - lane % 4) * loads + lane % 4, 4, loads
        acc.fill(0.0)
        for step in cutlass.range(whole, unroll=1):
            multiply_vectors(
                small,
                large,
                acc,
                row + at_n * rows,
                column,
                batch,
                first + step * (stride * loads),
                apart,
                tile,
                vec,
                loads,
                along_k,
                True,
                mma,
            )
        if cutlass.const_expr(rest > 0):
            multiply_vectors(
                small,
                large,
                acc,
                row + at_n * rows,
                column,
                batch,
                first + whole * (stride * loads),
                apart,
                tile,
                vec,
                min(loads, last),
                along_k,
                False,
                mma,
            )
        if cutlass.const_expr(mma is not None):
            for e in cutlass.range_constexpr(4):
                beside, of = at_n - lane // 4 + lane % 4 * 2 + e % 2, lane // 4 + e // 2 * 8
                if of < tile:
                    for r in cutlass.range_constexpr(rows):
                        sPart[beside * rows + r, of, at_k // 4, p] = acc[r, e]
        else:
            near = 1 if along_k else threads_n
            folds = [near << fold for fold in range(lanes_k.bit_length() - 1)]
            values, owned, spare = across_lanes(acc, lane, folds)
            if (lane & spare) == 0:
                for e in cutlass.range_constexpr(len(values)):
                    sPart[at_n * rows + (owned + e) % rows, (owned + e) // rows, at_k // lanes_k, p] = values[e]
    cute.arch.sync_threads()

    cC = cute.make_identity_tensor((1, 1))
    share = threads_n * threads_k
    if cutlass.const_expr(cluster_k > 1):
        if tidx == 0 and rank == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(arrived, cute.size(sSent) * 4)
        for turn in cutlass.range_constexpr(cute.ceil_div(span * tile, share)):
            at = tidx + turn * share
            i, j = at % span, at // span
            if at < span * tile:
                for p in cutlass.range_constexpr(len(pairs)):
                    mine = cute.make_rmem_tensor(cute.make_layout(1), Float32)
                    mine[0] = added(sPart, i, j, p)
                    bits = cute.recast_tensor(mine, cutlass.Int32)  # st.async stores 32-bit integers
                    cute.arch.store_async_dsmem(
                        sSent.iterator + cute.crd2idx((i, j, rank, p), sSent.layout), bits[0], arrived, 0
                    )
        if rank == 0:
            cute.arch.mbarrier_wait(arrived, 0)
    sums = sSent if cutlass.const_expr(cluster_k > 1) else sPart
    for turn in cutlass.range_constexpr(cute.ceil_div(span * tile, share)):
        at = tidx + turn * share
        i, j = at % span, at // span
        if at < span * tile and rank == 0:
            rSums = cute.make_rmem_tensor(cute.make_layout((1, len(pairs))), Float32)
            for p in cutlass.range_constexpr(len(pairs)):
                rSums[0, p] = added(sums, i, j, p)
            result = epilogue(
                *[rSums[None, p].load() for p in range(len(pairs))],
                *[fetch(x, cC, row + i, column + j, batch, (m, n), False) for x in extras],
                *sizes,
            )
            rC = cute.make_rmem_tensor(1, mC.element_type)
            rC.store(result.to(mC.element_type))
            put(rC, mC, cC, row + i, column + j, batch, (m, n))


@cute.jit
def multiply_vectors(
    small: cute.Tensor,
    large: cute.Tensor,
    acc: cute.Tensor,
    row: cutlass.Int32,
    column: cutlass.Int32,
    batch: cutlass.Int32,
    start: cutlass.Int32,
    apart: cutlass.Constexpr,
    tile: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    loads: cutlass.Constexpr,
    along_k: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
    mma: cute.TiledMma,
):
    """Adds to ``acc`` (rows of ``large``, rows of ``small``) the products of vectors ``start``, ``start + apart``, … of
    k. All of ``large`` is loaded before the first product. In place of rows past an edge, the last row is read.
    ``unpredicated``: every thread has all vectors."""
    rows, lane = acc.shape[0], cute.arch.lane_idx()
    m, n, vectors = cute.size(large, mode=[0]), cute.size(small, mode=[0]), cute.size(large, mode=[1]) // vec
    shape = cute.make_layout((rows, vec), stride=(vec, 1) if along_k else (1, rows))
    once = cute.make_copy_atom(  # L1 is left to the small operand
        cute.nvgpu.CopyG2ROp(),
        large.element_type,
        num_bits_per_copy=(vec if along_k else rows) * large.element_type.width,
        l1c_evict_priority=cute.nvgpu.CacheEvictionPriority.NO_ALLOCATE,
    )
    dense_in_rows = mma is None and small.stride[0] == 1 and small.stride[1] == tile and n == tile
    count = tile if mma is None else cute.ceil_div(tile, 8)  # rows of the small operand per thread
    few = cute.make_layout((count, vec), stride=(1, count) if dense_in_rows else (vec, 1))
    rLarge = [cute.make_rmem_tensor(shape, large.element_type) for _ in range(loads)]
    rSmall = cute.make_rmem_tensor(few, small.element_type)
    for load in cutlass.range_constexpr(loads):
        at = start + load * apart
        if cutlass.const_expr(not unpredicated):
            rLarge[load].fill(0.0)
        if at < vectors or unpredicated:
            for r in cutlass.range_constexpr(rows if along_k else vec):
                if cutlass.const_expr(along_k):
                    gRow = cute.flat_divide(large[cutlass.min(row + r, m - 1), None, batch], (vec,))
                    cute.copy(once, gRow[None, at], rLarge[load][r, None])
                else:
                    gRows = cute.flat_divide(large[None, at * vec + r, batch], (rows,))
                    cute.copy(once, gRows[None, cutlass.min(row // rows, m // rows - 1)], rLarge[load][None, r])
    left, right = (cute.make_rmem_tensor(layout, Float32) for layout in (shape, few))
    rA = cute.make_rmem_tensor(((2, 2, 2), 1, 1), small.element_type)
    rB = cute.make_rmem_tensor(((2, 2), 1, 1), small.element_type)
    rA.fill(0.0)
    for load in cutlass.range_constexpr(loads):
        at = start + load * apart
        if cutlass.const_expr(not unpredicated):
            rSmall.fill(0.0)
        if at < vectors or unpredicated:
            if cutlass.const_expr(dense_in_rows):
                cute.autovec_copy(cute.local_tile(small[None, None, batch], (tile, vec), (0, at)), rSmall)
            else:
                for j in cutlass.range_constexpr(count):
                    mine = column + j if cutlass.const_expr(mma is None) else column + j * 8 + lane // 4
                    gRow = cute.flat_divide(small[cutlass.min(mine, n - 1), None, batch], (vec,))
                    cute.autovec_copy(gRow[None, at], rSmall[j, None])
        if cutlass.const_expr(mma is not None):  # in fragments, four values along k are two pairs
            for e in cutlass.range_constexpr(0, vec, 4):
                for v in cutlass.range_constexpr(4):
                    for j in cutlass.range_constexpr(count):
                        rA[v % 2 + 2 * j + 4 * (v // 2)] = rSmall[j, e + v]
                for r in cutlass.range_constexpr(rows):
                    for v in cutlass.range_constexpr(4):
                        rB[v] = rLarge[load][r, e + v]
                    sums = cute.make_rmem_tensor(((2, 2), 1, 1), Float32)
                    for v in cutlass.range_constexpr(4):
                        sums[v] = acc[r, v]
                    cute.gemm(mma, sums, rA, rB, sums)
                    for v in cutlass.range_constexpr(4):
                        acc[r, v] = sums[v]
        else:
            left.store(rLarge[load].load().to(Float32))
            right.store(rSmall.load().to(Float32))
            for e in cutlass.range_constexpr(vec):
                for j in cutlass.range_constexpr(tile):
                    acc[None, j].store(acc[None, j].load() + left[None, e].load() * right[j, e])


def across_lanes(acc, lane, apart):
    """Sums ``acc`` over the lanes whose indices differ in the bits ``apart``. An exchange halves the number of values
    that a lane holds, if this number is even. Returns (sums of this lane, index of the first, mask of the
    bits in which lanes with the same sums differ). The lane with zeros in these bits stores the sums."""
    values, owned, spare = [acc[e] for e in range(cute.size(acc))], cutlass.Int32(0), 0
    for bit in apart:
        half, odd = divmod(len(values), 2)
        if odd:
            values = [value + cute.arch.shuffle_sync_bfly(value, offset=bit) for value in values]
            spare |= bit
        else:
            upper = (lane & bit) != 0
            sent = [chosen(upper, low, high) for low, high in zip(values[:half], values[half:])]
            kept = [chosen(upper, high, low) for low, high in zip(values[:half], values[half:])]
            values = [mine + cute.arch.shuffle_sync_bfly(other, offset=bit) for mine, other in zip(kept, sent)]
            owned = owned + (lane & bit) // bit * half
    return values, owned, spare


@cute.jit
def chosen(first: cutlass.Boolean, a: Float32, b: Float32):
    return a if first else b


def added(sums, i, j, p):
    """Sums an element over the third mode of ``sums``."""
    total = sums[i, j, 0, p]
    for part in range(1, cute.size(sums, mode=[2])):
        total = total + sums[i, j, part, p]
    return total

"""tested: product with few rows.

out = x @ w.mT + b

The large operand is read once, in vectors, and multiplied by the few rows of the other, with FMAs or on the
tensor cores; sums are fp32. The threads of a block, and the blocks of a cluster, share k; the order of every
sum is fixed. The epilogue is applied in fp32.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
from cutlass import Float32
from cutlass.cute.nvgpu import warp

TUNABLE = {
    "rows": (1, 2, 4, 8),
    "threads_n": (1, 2, 4, 8, 16, 32),
    "threads_k": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
    "loads": (1, 2, 4, 8),
    "cluster_k": (1, 2, 4, 8),
}


def constraints(config, workload, device):
    inputs = workload.inputs
    few = min(inputs[0].shape[0], inputs[1].shape[0])
    return not why_not(config, few, 1, True)


MOST = 16  # maximum number of rows of the small operand per block


MANY = 3  # from this number of rows on, the tensor cores multiply 16-bit operands


MAX_SUMS = 64  # accumulators per thread


MAX_LOADS = 16  # vectors of the large operand in flight per thread, in registers


SMEM_BYTES = 64 << 10


def tile_of(few):
    """Rows of the small operand per block: its ``few`` rows are split evenly over the fewest blocks."""
    return -(-few // -(-few // MOST))


def by_mma(config, few, halves):
    """Whether the tensor cores are used, if the sizes allow it. ``halves``: operands have 16 bits."""
    lanes = config["threads_n"] % 8 == 0 and config["threads_k"] % 4 == 0
    return halves and tile_of(few) >= MANY and lanes


def smem_bytes(config, tile, pairs):
    """Upper bound of the shared memory for partial results of warps and of a cluster's blocks, in either layout."""
    warps = max(config["threads_k"] // max(32 // config["threads_n"], 1), 1)
    return 4 * config["rows"] * config["threads_n"] * tile * pairs * (warps + config["cluster_k"])


def why_not(config, few, pairs, halves):
    """The limit that ``config`` exceeds, as text; "" if it is feasible. ``few``: rows of the small operand. ``pairs``:
    number of products computed together. ``halves``: operands have 16 bits."""
    threads = config["threads_n"] * config["threads_k"]
    if threads % 32 or threads > 1024:
        return f"{threads:,} threads in a block (must be a multiple of 32, at most 1,024)"
    sums = config["rows"] * (4 if by_mma(config, few, halves) else tile_of(few))
    if sums > MAX_SUMS:
        return f"{sums} sums in a thread's registers (at most {MAX_SUMS})"
    vectors = config["rows"] * config["loads"]
    if vectors > MAX_LOADS:
        return f"{vectors} vectors in flight in a thread's registers (at most {MAX_LOADS})"
    used = smem_bytes(config, tile_of(few), pairs)
    return f"{used:,} bytes of shared memory (at most {SMEM_BYTES:,})" if used > SMEM_BYTES else ""


@cute.jit
def fetch(
    mX: cute.Tensor,
    cX: cute.Tensor,
    row: cutlass.Int32,
    column: cutlass.Int32,
    batch: cutlass.Int32,
    shape_mn: cutlass.Constexpr,
    by_pairs: cutlass.Constexpr,
):
    """Loads ``mX`` (m, n, batch; stride 0 if broadcast) at a thread's coordinates ``cX`` of the tile at (row, column).

    Coordinates past the edge read the last element. ``by_pairs``: neighbours in ``cX`` are neighbours in n.
    """
    rX = cute.make_rmem_tensor(cute.size(cX), mX.element_type)
    m, n = shape_mn
    if cutlass.const_expr(by_pairs and lies_in_pairs(mX, n)):
        pairs = cute.make_tensor(
            mX.iterator,
            cute.make_layout((2, n // 2, mX.shape[0], mX.shape[2]), stride=(1, 2, mX.stride[0], mX.stride[2])),
        )
        rPair = cute.make_tensor(rX.iterator, cute.make_layout((2, cute.size(rX) // 2)))
        for e in cutlass.range_constexpr(cute.size(rX) // 2):
            i, j = cX[2 * e]
            i, j = cutlass.min(row + i, m - 1), cutlass.min((column + j) // 2, n // 2 - 1)
            cute.autovec_copy(pairs[None, j, i, batch], rPair[None, e])
    else:
        for e in cutlass.range_constexpr(cute.size(rX)):
            i, j = cX[e]
            rX[e] = mX[cutlass.min(row + i, m - 1), cutlass.min(column + j, n - 1), batch]
    return rX.load().to(Float32)


def lies_in_pairs(x, n):
    """Whether one load can take two neighbours in n. Host arithmetic: shapes and strides are Python ints."""
    flat = [*x.stride] if isinstance(x.stride[0], int) and isinstance(x.stride[2], int) else [1]
    return flat[1:2] == [1] and n % 2 == 0 and flat[0] % 2 == 0 and flat[2] % 2 == 0


@cute.jit
def put(
    rC: cute.Tensor,
    mC: cute.Tensor,
    cC: cute.Tensor,
    row: cutlass.Int32,
    column: cutlass.Int32,
    batch: cutlass.Int32,
    shape_mn: cutlass.Constexpr,
):
    """Stores a thread's results, except those past the edge of the matrix."""
    for e in cutlass.range_constexpr(cute.size(rC)):
        i, j = cC[e]
        if row + i < shape_mn[0] and column + j < shape_mn[1]:
            mC[row + i, column + j, batch] = rC[e]


OVERLAP = False  # whether all kernels of this module start early; set by modules with several kernels


def overlapping():
    """Whether a kernel can start before the previous one has ended: from sm_90 on."""
    return cutlass.cutlass_dsl.BaseDSL._get_dsl().get_arch_enum() >= cutlass.Arch.sm_90


def start_next_and_wait():
    """Lets the next kernel start, then waits until the previous kernel's writes are visible."""
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()


def widest(x, along):
    """Number of neighbours along a mode of ``x`` that one load of up to 16 bytes takes. Host arithmetic."""
    if x.stride[along] != 1:
        return 1
    pitches = leaves([x.stride[d] for d in range(3) if d != along])
    return math.gcd(128 // x.element_type.width, cute.size(x, mode=[along]), *pitches)


def leaves(numbers):
    return [leaf for n in numbers for leaf in ([n] if isinstance(n, int) else leaves(n))]


def view(pointer, shape, stride):
    """The memory at ``pointer`` as a tensor with this shape, and strides in elements."""
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))


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


def epilogue(acc, b):
    """x @ w.mT + b, on fp32 vectors."""
    return acc + b


@cute.jit
def launch(
    x: cute.Tensor,
    w: cute.Tensor,
    b: cute.Tensor,
    out: cute.Tensor,
    stream: cuda.CUstream,
    rows: cutlass.Constexpr = 2,
    threads_n: cutlass.Constexpr = 8,
    threads_k: cutlass.Constexpr = 32,
    loads: cutlass.Constexpr = 8,
    cluster_k: cutlass.Constexpr = 1,
):
    m = x.shape[0]
    n = w.shape[0]
    batches = 1
    mA = view(x.iterator, (m, x.shape[1], batches), (x.stride[0], x.stride[1], 0))
    mB = view(w.iterator, (n, w.shape[1], batches), (w.stride[0], w.stride[1], 0))
    mC = view(out.iterator, (m, n, batches), (out.stride[0], out.stride[1], 0))
    eB = view(b.iterator, (m, n, batches), (0, b.stride[0], 0))
    mAs, mBs = (mA,), (mB,)
    extras, sizes = (eB,), ()
    multiply_few(mAs, mBs, mC, extras, stream, sizes, ((0, 0),),
                 (threads_n, threads_k), rows, loads, cluster_k)

"""tested: matrix product by mma.sync.

out = max((x @ w.mT + b), 0)

cp.async loads tiles into swizzled shared memory, several stages ahead of the warps that multiply them on the
tensor cores; a plain kernel serves operands of different types. Both apply the epilogue in fp32.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
from cutlass import Float32
from cutlass.cute.nvgpu import cpasync, warp

TUNABLE = {
    "tile_m": (16, 32, 64, 128, 256),
    "tile_n": (32, 64, 128, 256),
    "tile_k": (32, 64),
    "stages": (2, 3, 4, 5, 6),
    "warps_m": (1, 2, 4),
    "warps_n": (1, 2, 4),
    "raster": ('m', 'n'),
    "group": (1, 2, 4, 8, 16),
    "split_k": (1, 2, 4, 8, 16),
}


def constraints(config, workload, device):
    results = math.prod(workload.outputs[0].shape)
    return not why_not(config, results, lefts=1, rights=1, itemsize=2, pairs=1, halved=False, smem_bytes=166912, sms=108)


def workspace(workload, config):
    """Workspace: partial results of split-K, and copies of operands that the kernel cannot read."""
    inputs = workload.inputs
    results = (1, inputs[0].shape[0], inputs[1].shape[0])
    split = config["split_k"]
    wanted = [("partials", "f32", (split, *results) if split > 1 else (1, 1, 1, 1))]
    return wanted


MAX_SUMS = 128  # accumulators per thread


MAX_SUMS_OF_HALVES = 64  # accumulators per thread for split fp32: the halves need registers too


BLOCKS_PER_SM = 4  # split-K is not used beyond this many blocks per SM


def accumulators(config, pairs, halved):
    """Accumulators per thread. Split fp32 (``halved``) has two sets: for the step along k, and for the total."""
    threads = 32 * config["warps_m"] * config["warps_n"]
    return config["tile_m"] * config["tile_n"] * pairs * (2 if halved else 1) // threads


def shared_bytes(tile_shape_mnk, stages, lefts, rights, itemsize):
    """Shared memory of a block: the operands' stages, or a tile of results if that is larger."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    rows = tile_m * lefts + tile_n * rights
    return max(stages * rows * tile_k * itemsize, tile_m * (tile_n * 4 + 16))


def why_not(config, results, lefts, rights, itemsize, pairs, halved, smem_bytes, sms):
    """The limit that ``config`` exceeds, as text; "" if it is feasible. ``results``: number of output elements.
    ``pairs``: number of products, of ``lefts`` A and ``rights`` B operands with ``itemsize`` bytes per element.
    ``smem_bytes``: shared memory per block. ``sms``: SMs of the GPU."""
    for side in ("m", "n"):
        tile, warps = config[f"tile_{side}"], config[f"warps_{side}"]
        if tile < 16 * warps:
            return f"warps_{side} of {warps} need at least 16 each, more than tile_{side} of {tile}"
    held, most = accumulators(config, pairs, halved), MAX_SUMS_OF_HALVES if halved else MAX_SUMS
    if held > most:
        return f"{held} accumulators in a thread's registers (at most {most})"
    tile_shape_mnk = (config["tile_m"], config["tile_n"], config["tile_k"])
    used = shared_bytes(tile_shape_mnk, config["stages"], lefts, rights, itemsize)
    if used > smem_bytes:
        return f"{used:,} bytes of shared memory (at most {smem_bytes:,})"
    split, tile = config["split_k"], config["tile_m"] * config["tile_n"]
    if split > 1 and pairs > 1:
        return f"split_k of {split} with several products: split-K is for a single product"
    if split > 1 and split * results > BLOCKS_PER_SM * sms * tile:
        tiles = -(-results // tile)
        return f"split_k of {split} with {tiles} tiles: {split * tiles} blocks (at most {BLOCKS_PER_SM * sms})"
    return ""


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


def widest(x, along):
    """Number of neighbours along a mode of ``x`` that one load of up to 16 bytes takes. Host arithmetic."""
    if x.stride[along] != 1:
        return 1
    pitches = leaves([x.stride[d] for d in range(3) if d != along])
    return math.gcd(128 // x.element_type.width, cute.size(x, mode=[along]), *pitches)


def leaves(numbers):
    return [leaf for n in numbers for leaf in ([n] if isinstance(n, int) else leaves(n))]


@cute.jit
def recomputed(
    result: cute.TensorSSA,
    doubt: cute.TensorSSA,
    mA: cute.Tensor,
    mB: cute.Tensor,
    cC: cute.Tensor,
    row: cutlass.Int32,
    column: cutlass.Int32,
    batch: cutlass.Int32,
    first: cutlass.Int32,
    last: cutlass.Int32,
    shape_mn: cutlass.Constexpr,
):
    """``result``, a thread's products from split operands; recomputed if any ``doubt`` is NaN. The products are then
    summed from the fp32 operands, over k from ``first`` to ``last``, in partial sums of 64 terms that are added up."""
    rC = cute.make_rmem_tensor(cute.size(cC), Float32)
    rC.store(result)
    doubts = doubt.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
    if doubts != doubts:
        columns, (rows_at, columns_at) = cute.size(cC) // 2, places(cC)
        vecs = tuple(min(widest(x, 1), max(32 // columns, 1)) for x in (mA, mB))  # to save registers
        wide = max(vecs)
        rSum, rTotal = (cute.make_rmem_tensor((columns, 2), Float32) for _ in range(2))
        rA, rB = cute.make_rmem_tensor((wide, 2), Float32), cute.make_rmem_tensor((wide, columns), Float32)
        rTotal.fill(0.0)
        for start in cutlass.range(first, last, 64, unroll=1):
            rSum.fill(0.0)
            for at in cutlass.range(start, cutlass.min(start + 64, last), wide, unroll=1):
                for r in cutlass.range_constexpr(2):
                    i = cutlass.min(row + rows_at[r], shape_mn[0] - 1)
                    bring(mA[i, None, batch], rA[None, r], at, vecs[0])
                for c in cutlass.range_constexpr(columns):
                    j = cutlass.min(column + columns_at[c], shape_mn[1] - 1)
                    bring(mB[j, None, batch], rB[None, c], at, vecs[1])
                for s in cutlass.range_constexpr(wide):
                    for r in cutlass.range_constexpr(2):
                        rSum[None, r].store(rSum[None, r].load() + rB[s, None].load() * rA[s, r])
            rTotal.store(rTotal.load() + rSum.load())
        rC.store(by_thread(rTotal).load().reshape(rC.shape))
    return rC.load()


def places(cC):
    """Rows and columns of a thread's accumulators: two neighbours in a row, two 8 rows below, again every 8 columns."""
    return [cC[2 * r][0] for r in range(2)], [cC[c // 2 * 4 + c % 2][1] for c in range(cute.size(cC) // 2)]


def by_thread(r):
    """Results (column, row), viewed in the order of a thread's accumulators."""
    columns = cute.size(r) // 2
    return cute.make_tensor(r.iterator, cute.make_layout((2, 2, columns // 2), stride=(1, columns, 2)))


def bring(x, r, at, vec):
    """Loads the numbers of row ``x`` from ``at`` on, as many as ``r`` holds, in vectors of ``vec``."""
    for s in range(cute.size(r) // vec):
        cute.autovec_copy(cute.flat_divide(x, (vec,))[None, at // vec + s], cute.flat_divide(r, (vec,))[None, s])


OVERLAP = False  # whether all kernels of this module start early; set by modules with several kernels


def overlapping():
    """Whether a kernel can start before the previous one has ended: from sm_90 on."""
    return cutlass.cutlass_dsl.BaseDSL._get_dsl().get_arch_enum() >= cutlass.Arch.sm_90


def start_next_and_wait():
    """Lets the next kernel start, then waits until the previous kernel's writes are visible."""
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()


@cute.jit
def tile_at(index: cutlass.Int32, across_mn: cutlass.Constexpr, group: cutlass.Constexpr, along_n: cutlass.Constexpr):
    """(row, column, batch) of tile number ``index``. A batch has ``across_mn`` tiles.

    Tiles are ordered in bands ``group`` tiles high, column by column (``along_n``: bands ``group`` tiles wide, row by
    row). Tiles that are computed at the same time therefore share operands in L2.
    """
    high, wide = (across_mn[1], across_mn[0]) if along_n else across_mn
    batch, rest = index // (high * wide), index % (high * wide)
    band, rest = rest // (group * wide), rest % (group * wide)
    height = cutlass.min(high - band * group, group)
    i, j = band * group + rest % height, rest // height
    row, column = (j, i) if along_n else (i, j)
    return row, column, batch


def view(pointer, shape, stride):
    """The memory at ``pointer`` as a tensor with this shape, and strides in elements."""
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))


@cute.jit
def multiply_plainly(
    mAs: tuple,
    mBs: tuple,
    mC: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
):
    """``mC`` (m, n, batch): epilogue of products ``pairs`` of ``mAs`` (m, k, batch) and ``mBs`` (n, k, batch)."""
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    dense_in_k = tuple(tuple(x.stride[1] == 1 for x in side) for side in (mAs, mBs))
    plain_kernel(mAs, mBs, mC, extras, sizes, pairs, dense_in_k).launch(
        grid=[cute.ceil_div(m, 64) * cute.ceil_div(n, 64) * batches, 1, 1],
        block=[256, 1, 1],
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


@cute.kernel
def plain_kernel(
    mAs: tuple,
    mBs: tuple,
    mC: cute.Tensor,
    extras: tuple,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
    dense_in_k: cutlass.Constexpr,
):
    """A block computes a 64×64 tile, a thread 4×4 of it, in steps of 16 along k, one product after another."""
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    m, n = cute.size(mC, mode=[0]), cute.size(mC, mode=[1])
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    high, wide = cute.ceil_div(m, 64), cute.ceil_div(n, 64)
    row, column, batch = bidx % high * 64, bidx // high % wide * 64, bidx // (high * wide)
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(Float32, cute.make_layout((64, 16), stride=(1, 68)), 16)
    sB = smem.allocate_tensor(Float32, cute.make_layout((64, 16), stride=(1, 68)), 16)
    tA = cute.local_tile(sA, (4, 16), (tidx // 16, 0))
    tB = cute.local_tile(sB, (4, 16), (tidx % 16, 0))
    rA, rB = (cute.make_rmem_tensor(4, Float32) for _ in range(2))
    accs = [cute.make_rmem_tensor(16, Float32) for _ in pairs]  # 4×4, row-major
    for p in cutlass.range_constexpr(len(pairs)):
        acc, (left, right) = accs[p], pairs[p]
        k = cute.size(mAs[left], mode=[1])
        acc.fill(0.0)
        for start in cutlass.range(0, k, 16, unroll=1):
            load_slab(mAs[left], sA, row, start, batch, m, k, dense_in_k[0][left])
            load_slab(mBs[right], sB, column, start, batch, n, k, dense_in_k[1][right])
            cute.arch.sync_threads()
            for step in cutlass.range_constexpr(16):
                cute.autovec_copy(tA[None, step], rA)
                cute.autovec_copy(tB[None, step], rB)
                for i in cutlass.range_constexpr(4):
                    for j in cutlass.range_constexpr(4):
                        acc[4 * i + j] = acc[4 * i + j] + rA[i] * rB[j]
            cute.arch.sync_threads()
    cC = cute.local_tile(cute.make_identity_tensor((64, 64)), (4, 4), (tidx // 16, tidx % 16))
    cC = cute.make_tensor(cC.iterator, cute.select(cC.layout, mode=[1, 0]))
    result = epilogue(
        *[acc.load() for acc in accs],
        *[fetch(x, cC, row, column, batch, (m, n), False) for x in extras],
        *sizes,
    )
    rC = cute.make_rmem_tensor(16, mC.element_type)
    rC.store(result.to(mC.element_type))
    put(rC, mC, cC, row, column, batch, (m, n))


@cute.jit
def load_slab(
    mX: cute.Tensor,
    sX: cute.Tensor,
    row: cutlass.Int32,
    start: cutlass.Int32,
    batch: cutlass.Int32,
    rows: cutlass.Constexpr,
    k: cutlass.Constexpr,
    dense_in_k: cutlass.Constexpr,
):
    """Loads 64 rows × 16 of k as fp32, zeros past the edge. Neighbouring threads read neighbours in memory."""
    tidx, _, _ = cute.arch.thread_idx()
    for turn in cutlass.range_constexpr(4):
        at = tidx + turn * 256
        i, j = (at // 16, at % 16) if cutlass.const_expr(dense_in_k) else (at % 64, at // 64)
        value = Float32(0.0)
        if row + i < rows and start + j < k:
            value = Float32(mX[row + i, start + j, batch])
        sX[i, j] = value


@cute.jit
def add_up(
    mPart: cute.Tensor,
    mC: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
):
    """``mC`` (m, n, batch): the epilogue of ``mPart`` (m, n, batch, part), summed over the parts in fp32."""
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    vec = 4 if lies_in_pairs(mC, n) and n % 4 == 0 else 1
    total_kernel(mPart, mC, extras, sizes, vec).launch(
        grid=[cute.ceil_div(m * batches * n // vec, 256), 1, 1],
        block=[256, 1, 1],
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


@cute.kernel
def total_kernel(
    mPart: cute.Tensor,
    mC: cute.Tensor,
    extras: tuple,
    sizes: cutlass.Constexpr,
    vec: cutlass.Constexpr,
):
    """Sums ``mPart`` (m, n, batch, part), ``vec`` neighbours in n per thread, and applies the epilogue."""
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    m, n, batches, parts = (cute.size(mPart, mode=[d]) for d in range(4))
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    index, wide = bidx * 256 + tidx, n // vec
    if index < wide * m * batches:
        at, row, batch = index % wide, index // wide % m, index // (wide * m)
        column = at * vec
        gPart = cute.make_tensor(
            mPart.iterator,
            cute.make_layout((vec, wide, m, batches, parts), stride=(1, vec, n, m * n, batches * m * n)),
        )
        rPart = cute.make_rmem_tensor((vec, parts), Float32)
        for part in cutlass.range_constexpr(parts):
            cute.autovec_copy(gPart[None, at, row, batch, part], rPart[None, part])
        total = rPart[None, 0].load()
        for part in cutlass.range_constexpr(1, parts):
            total = total + rPart[None, part].load()
        cC = cute.make_identity_tensor((1, vec))
        result = epilogue(
            total,
            *[fetch(x, cC, row, column, batch, (m, n), vec > 1) for x in extras],
            *sizes,
        )
        rC = cute.make_rmem_tensor(vec, mC.element_type)
        rC.store(result.to(mC.element_type))
        if cutlass.const_expr(vec > 1):
            gC = cute.make_tensor(
                mC.iterator,
                cute.make_layout((vec, wide, mC.shape[0], mC.shape[2]), stride=(1, vec, mC.stride[0], mC.stride[2])),
            )
            cute.autovec_copy(rC, gC[None, at, row, batch])
        else:
            mC[row, column, batch] = rC[0]


@cute.jit
def multiply(
    mAs: tuple,
    mBs: tuple,
    mC: cute.Tensor,
    partials: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
    split_k: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    warps_mn: cutlass.Constexpr,
    raster: cutlass.Constexpr,
    group: cutlass.Constexpr,
    tf32: cutlass.Constexpr,
):
    """``mC`` (m, n, batch): the epilogue of products ``pairs`` of ``mAs`` (m, k, batch) and ``mBs`` (n, k, batch).
    ``partials``: workspace for the results of ``split_k`` parts of k. ``tf32``: fp32 operands may be rounded to
    TF32."""
    if cutlass.const_expr(not alike((*mAs, *mBs))):
        multiply_plainly(mAs, mBs, mC, extras, stream, sizes, pairs)
    elif cutlass.const_expr(split_k > 1 and cute.size(mAs[0], mode=[1]) > tile_shape_mnk[2]):  # one step is not split
        m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
        mPart = cute.make_tensor(partials.iterator, cute.make_layout((m, n, batches * split_k), stride=(n, 1, m * n)))
        multiply_by_mma(
            mAs,
            mBs,
            mPart,
            extras,
            stream,
            sizes,
            pairs,
            split_k,
            tile_shape_mnk,
            stages,
            warps_mn,
            raster,
            group,
            tf32,
        )
        mPart = cute.make_tensor(
            partials.iterator,
            cute.make_layout((m, n, batches, split_k), stride=(n, 1, m * n, batches * m * n)),
        )
        add_up(mPart, mC, extras, stream, sizes)
    else:
        multiply_by_mma(
            mAs,
            mBs,
            mC,
            extras,
            stream,
            sizes,
            pairs,
            1,
            tile_shape_mnk,
            stages,
            warps_mn,
            raster,
            group,
            tf32,
        )


@cute.jit
def multiply_by_mma(
    mAs: tuple,
    mBs: tuple,
    mC: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
    split_k: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    warps_mn: cutlass.Constexpr,
    raster: cutlass.Constexpr,
    group: cutlass.Constexpr,
    tf32: cutlass.Constexpr,
):
    """Launches the kernel. If ``split_k`` > 1, ``mC`` has separate batches for each part of k, without epilogue."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    k_tiles = cute.ceil_div(cute.ceil_div(cute.size(mAs[0], mode=[1]), tile_k), split_k)
    stages = max(min(stages, k_tiles), 2)
    mXs, rows = (*mAs, *mBs), [tile_m] * len(mAs) + [tile_n] * len(mBs)
    along_k = tuple(not dense_in_rows(x) for x in mXs)
    vecs = tuple(widest(x, 1 if along else 0) for x, along in zip(mXs, along_k))
    dtype = mAs[0].element_type
    layouts = [
        cute.tile_to_shape(swizzled(rows_, tile_k, dtype.width, along), (rows_, tile_k, stages), (0, 1, 2))
        for rows_, along in zip(rows, along_k)
    ]
    op = warp.MmaTF32Op((16, 8, 8)) if dtype == Float32 else warp.MmaF16BF16Op(dtype, Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(
        op, cute.make_layout((*warps_mn, 1)), permutation_mnk=(warps_mn[0] * 16, warps_mn[1] * 16, op.shape_mnk[2])
    )
    smem_bytes = shared_bytes(tile_shape_mnk, stages, len(mAs), len(mBs), dtype.width // 8)
    mma_kernel(
        mAs,
        mBs,
        mC,
        extras,
        mma,
        tuple(layouts),
        sizes,
        pairs,
        split_k,
        vecs,
        along_k,
        widest(mC, 1),
        tile_shape_mnk,
        stages,
        raster == "n",
        group,
        tf32,
        smem_bytes,
    ).launch(
        grid=[cute.ceil_div(m, tile_m) * cute.ceil_div(n, tile_n) * batches, 1, 1],
        block=[warps_mn[0] * warps_mn[1] * 32, 1, 1],
        min_blocks_per_mp=1,
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


def alike(operands):
    """Whether all operands have the same length along k, and the same dtype, which the tensor cores multiply."""
    kinds, lengths = {x.element_type for x in operands}, {cute.size(x, mode=[1]) for x in operands}
    return len(kinds) == 1 and len(lengths) == 1 and kinds <= {cutlass.BFloat16, cutlass.Float16, Float32}


def dense_in_rows(x):
    return x.stride[0] == 1 and x.stride[1] != 1


def swizzled(rows, tile_k, width, along_k):
    """The swizzled layout atom of a tile: eight vectors of 16 bytes, one below the other, lie in different banks of
    shared memory."""
    near, limit = tile_k if along_k else rows, 1024 // width
    near = min(limit, near & -near)
    bits = (near * width // 128).bit_length() - 1
    size = (128 // width).bit_length() - 1
    shape, stride = ((8, near), (near, 1)) if along_k else ((near, 8), (1, near))
    return cute.make_composed_layout(cute.make_swizzle(bits, size, 3), 0, cute.make_layout(shape, stride=stride))


@cute.kernel
def mma_kernel(
    mAs: tuple,
    mBs: tuple,
    mC: cute.Tensor,
    extras: tuple,
    mma: cute.TiledMma,
    layouts: tuple,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
    split_k: cutlass.Constexpr,
    vecs: cutlass.Constexpr,
    along_k: cutlass.Constexpr,
    vec_c: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    along_n: cutlass.Constexpr,
    group: cutlass.Constexpr,
    tf32: cutlass.Constexpr,
    smem_bytes: cutlass.Constexpr,
):
    """A block computes a tile of the result over one of ``split_k`` parts of k. Per operand: ``layouts`` in shared
    memory; ``vecs``, the vector width of its loads; ``along_k``, whether they go along k (else across rows)."""
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    tile_m, tile_n, tile_k = tile_shape_mnk
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    k = cute.size(mAs[0], mode=[1])
    dtype = mAs[0].element_type
    halved = dtype.width == 32 and not tf32
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    across_mn = (cute.ceil_div(m, tile_m), cute.ceil_div(n, tile_n))
    i, j, batch = tile_at(bidx, across_mn, group, along_n)
    row, column = i * tile_m, j * tile_n
    k_tiles = cute.ceil_div(cute.ceil_div(k, tile_k), split_k)
    k_first, batch_ab = batch // (batches // split_k) * k_tiles, batch % (batches // split_k)
    whole = k % (tile_k * split_k) == 0

    smem = utils.SmemAllocator()
    memory = smem.allocate(smem_bytes, 128)  # the stages; later the tile of results
    mXs, beginning = (*mAs, *mBs), cute.recast_ptr(memory, dtype=dtype)
    sXs = [cute.make_tensor(beginning + offset, layout) for offset, layout in zip(offsets_of(layouts), layouts)]

    thr_mma = mma.get_slice(tidx)
    sAs, sBs = ([s for o, s in enumerate(sXs) if (o < len(mAs)) == left] for left in (True, False))
    rAs = [mma.make_fragment_A(thr_mma.partition_A(s[None, None, 0])) for s in sAs]
    rBs = [mma.make_fragment_B(thr_mma.partition_B(s[None, None, 0])) for s in sBs]
    rAs, rBs = ([cute.recast_tensor(r, dtype) for r in some] for some in (rAs, rBs))  # not yet rounded to TF32
    accs = [cute.make_rmem_tensor(mma.partition_shape_C((tile_m, tile_n)), Float32) for _ in pairs]
    steps = [cute.make_rmem_tensor(acc.layout, Float32) for acc in accs] if halved else []  # sums of one step
    for acc in accs:
        acc.fill(0.0)
    readers = [reader(r, s, mma, tidx, o < len(mAs), along_k[o]) for o, (r, s) in enumerate(zip((*rAs, *rBs), sXs))]

    k_blocks = cute.size(rAs[0], mode=[2])
    for stage in cutlass.range_constexpr(stages - 1):
        if cutlass.const_expr(stage < k_tiles):
            for o in cutlass.range_constexpr(len(mXs)):
                tile = (i, j)[o >= len(mAs)]
                fill_stage(
                    mXs[o],
                    sXs[o],
                    tile,
                    k_first + stage,
                    batch_ab,
                    stage,
                    tidx,
                    cute.size(mma),
                    vecs[o],
                    along_k[o],
                    whole,
                )
        cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(stages - 2)
    cute.arch.sync_threads()
    slot, free = cutlass.Int32(0), cutlass.Int32(stages - 1)
    for read in readers:
        read(0, slot)
    for k_tile in cutlass.range(k_tiles, unroll=1):
        for k_block in cutlass.range_constexpr(k_blocks):
            if cutlass.const_expr(k_block == k_blocks - 1):
                cute.arch.cp_async_wait_group(stages - 2)
                cute.arch.sync_threads()
                free = slot
                slot = slot + 1
                if slot == stages:
                    slot = 0
            ahead = (k_block + 1) % k_blocks  # load the next fragments while the tensor cores work
            for read in readers:
                if cutlass.const_expr(ahead > 0 or k_tiles > 1):
                    read(ahead, slot)
            if cutlass.const_expr(k_block == 0):
                if k_tile + stages - 1 < k_tiles:
                    for o in cutlass.range_constexpr(len(mXs)):
                        tile, k_next = (i, j)[o >= len(mAs)], k_first + k_tile + stages - 1
                        fill_stage(
                            mXs[o],
                            sXs[o],
                            tile,
                            k_next,
                            batch_ab,
                            free,
                            tidx,
                            cute.size(mma),
                            vecs[o],
                            along_k[o],
                            whole,
                        )
                cute.arch.cp_async_commit_group()
            frags = [r[None, None, k_block] for r in (*rAs, *rBs)]
            if cutlass.const_expr(dtype.width == 32):
                frags = [rounded(r) if tf32 else halves_of(r) for r in frags]
            if cutlass.const_expr(halved and k_block == 0):
                for step in steps:
                    step.fill(0.0)
            for p in cutlass.range_constexpr(len(pairs)):
                a, b = frags[pairs[p][0]], frags[len(mAs) + pairs[p][1]]
                if cutlass.const_expr(halved):
                    for left, right in ((a[1], b[0]), (a[0], b[1]), (a[0], b[0])):
                        cute.gemm(mma, steps[p], left, right, steps[p])
                else:
                    cute.gemm(mma, accs[p], a, b, accs[p])
        for acc, step in zip(accs, steps):
            acc.store(acc.load() + step.load())
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()

    # Results go through shared memory, so that stores are coalesced along rows.
    pitch = tile_n + 128 // mC.element_type.width
    sC = cute.recast_ptr(memory, dtype=mC.element_type)
    cCs = thr_mma.partition_C(cute.make_identity_tensor((tile_m, tile_n)))
    for band in cutlass.range_constexpr(cute.size(cCs, mode=[1])):
        cC = cCs[None, band, None]
        values = [cute.make_rmem_tensor(cute.size(cC), Float32) for _ in pairs]
        for value, acc in zip(values, accs):
            for e in cutlass.range_constexpr(cute.size(cC)):
                value[e] = acc[None, band, None][e]
        values = [value.load() for value in values]
        if cutlass.const_expr(halved):
            start, end = k_first * tile_k, cutlass.min((k_first + k_tiles) * tile_k, k)
            values = [
                recomputed(value, value * 0.0, mAs[a], mBs[b], cC, row, column, batch_ab, start, end, (m, n))
                for value, (a, b) in zip(values, pairs)
            ]
        if cutlass.const_expr(split_k > 1):
            result = values[0]
        else:
            result = epilogue(*values, *[fetch(x, cC, row, column, batch, (m, n), True) for x in extras], *sizes)
        rC = cute.make_rmem_tensor((2, cute.size(cC) // 2), mC.element_type)
        rC.store(result.to(mC.element_type).reshape(rC.shape))
        for e in cutlass.range_constexpr(cute.size(cC) // 2):
            r, c = cC[2 * e]
            cute.autovec_copy(rC[None, e], vector_at(sC + (r * pitch + c), 2))
    cute.arch.sync_threads()
    wide = tile_n // vec_c
    for turn in cutlass.range_constexpr(cute.ceil_div(tile_m * wide, cute.size(mma))):
        at = tidx + turn * cute.size(mma)
        r, c = at // wide, at % wide * vec_c
        if r < tile_m and row + r < m and column + c < n:
            rOut = cute.make_rmem_tensor(vec_c, mC.element_type)
            cute.autovec_copy(vector_at(sC + (r * pitch + c), vec_c), rOut)
            gC = cute.flat_divide(mC[row + r, None, batch], (vec_c,))
            cute.autovec_copy(rOut, gC[None, (column + c) // vec_c])


@cute.jit
def fill_stage(
    mX: cute.Tensor,
    sX: cute.Tensor,
    tile: cutlass.Int32,
    k_tile: cutlass.Int32,
    batch: cutlass.Int32,
    stage: cutlass.Int32,
    tidx: cutlass.Int32,
    threads: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    along_k: cutlass.Constexpr,
    whole: cutlass.Constexpr,
):
    """Starts to copy a tile of ``mX`` (rows, k, batch) to a stage, in vectors of ``vec`` neighbours in k (``along_k``)
    or in rows. Neighbouring threads read neighbours in memory. ``whole``: no tile extends past the end of k."""
    rows, tile_k = cute.size(sX, mode=[0]), cute.size(sX, mode=[1])
    size, k = cute.size(mX, mode=[0]), cute.size(mX, mode=[1])
    stage_layout = cute.slice_(sX.layout, (None, None, 0))
    across = (tile_k if along_k else rows) // vec
    bits = vec * mX.element_type.width
    for turn in cutlass.range_constexpr(cute.ceil_div(rows * tile_k, vec * threads)):
        at = tidx + turn * threads
        if at < rows * tile_k // vec or (turn + 1) * threads * vec <= rows * tile_k:
            near, far = at % across, at // across
            r, c = (far, near * vec) if cutlass.const_expr(along_k) else (near * vec, far)
            dst = vector_at(sX.iterator + (cute.crd2idx((r, c), stage_layout) + stage * (rows * tile_k)), vec)
            if whole or k_tile * tile_k + c < k:
                if cutlass.const_expr(along_k):
                    gX = cute.flat_divide(mX[cutlass.min(tile * rows + r, size - 1), None, batch], (vec,))
                    source = gX[None, k_tile * (tile_k // vec) + near]
                else:
                    gX = cute.flat_divide(mX[None, k_tile * tile_k + c, batch], (vec,))
                    source = gX[None, cutlass.min(tile * (rows // vec) + near, size // vec - 1)]
                if cutlass.const_expr(bits >= 32):
                    cache_mode = cpasync.LoadCacheMode.GLOBAL if bits == 128 else cpasync.LoadCacheMode.ALWAYS
                    op = cpasync.CopyG2SOp(cache_mode=cache_mode)
                    cute.copy(cute.make_copy_atom(op, mX.element_type, num_bits_per_copy=bits), source, dst)
                else:
                    dst[0] = source[0]
            else:
                dst.fill(0.0)


def offsets_of(layouts):
    """Offsets of layouts that are placed one after another."""
    offsets = [0]
    for layout in layouts:
        offsets.append(offsets[-1] + cute.size(layout))
    return offsets


def vector_at(pointer, vec):
    return cute.make_tensor(pointer.align(vec * pointer.dtype.width // 8), cute.make_layout(vec))


def halves_of(fragment):
    """A fragment's fp32 numbers as (high, low), both TF32: together they hold 22 bits."""
    high, low = (cute.make_rmem_tensor(cute.make_layout(fragment.shape), cutlass.Int32) for _ in range(2))
    rounded = cute.recast_tensor(high, Float32)
    for e in range(cute.size(fragment)):
        high[e] = cutlass.Int32(cute.arch.cvt_f32_tf32(fragment[e]))
        low[e] = cutlass.Int32(cute.arch.cvt_f32_tf32(fragment[e] - rounded[e]))
    return tuple(cute.recast_tensor(x, cutlass.TFloat32) for x in (high, low))


def reader(fragment, sX, mma, tidx, left, along_k):
    """A function (block of k, slot) that loads a block of ``fragment`` from shared memory ``sX``."""
    if sX.element_type.width == 16:
        atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(not along_k, 4), sX.element_type)
        copy = (cute.make_tiled_copy_A if left else cute.make_tiled_copy_B)(atom, mma)
        thread = copy.get_slice(tidx)
        source, target = thread.partition_S(sX), thread.retile(fragment)
        return lambda block, slot: cute.copy(copy, source[None, None, block, slot], target[None, None, block])
    rows, tile_k = cute.size(sX, mode=[0]), cute.size(sX, mode=[1])
    coords, thread = cute.make_identity_tensor((rows, tile_k)), mma.get_slice(tidx)
    coords = thread.partition_A(coords) if left else thread.partition_B(coords)
    stage_layout = cute.slice_(sX.layout, (None, None, 0))

    def one_by_one(block, slot):
        for e in range(cute.size(fragment[None, None, block])):
            r, c = coords[None, None, block][e]
            at = cute.crd2idx((r, c), stage_layout) + slot * (rows * tile_k)
            fragment[None, None, block][e] = vector_at(sX.iterator + at, 1)[0]

    return one_by_one


def rounded(fragment):
    """A fragment's fp32 numbers, rounded to nearest in TF32."""
    bits = cute.make_rmem_tensor(cute.make_layout(fragment.shape), cutlass.Int32)
    for e in range(cute.size(fragment)):
        bits[e] = cutlass.Int32(cute.arch.cvt_f32_tf32(fragment[e]))
    return cute.recast_tensor(bits, cutlass.TFloat32)


def epilogue(acc, b):
    """max((x @ w.mT + b), 0), on fp32 vectors."""
    summed = acc + b
    return cute.where(summed < 0.0, 0.0, summed)


@cute.jit
def launch(
    x: cute.Tensor,
    w: cute.Tensor,
    b: cute.Tensor,
    out: cute.Tensor,
    partials: cute.Tensor,
    stream: cuda.CUstream,
    tile_m: cutlass.Constexpr = 64,
    tile_n: cutlass.Constexpr = 128,
    tile_k: cutlass.Constexpr = 64,
    stages: cutlass.Constexpr = 3,
    warps_m: cutlass.Constexpr = 2,
    warps_n: cutlass.Constexpr = 2,
    raster: cutlass.Constexpr = 'm',
    group: cutlass.Constexpr = 8,
    split_k: cutlass.Constexpr = 1,
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
    multiply(mAs, mBs, mC, partials, extras, stream, sizes, ((0, 0),), split_k, (tile_m, tile_n, tile_k), stages, (warps_m, warps_n), raster, group, False)

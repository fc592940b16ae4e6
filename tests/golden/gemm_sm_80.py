"""tested: matrix product by mma.sync.

out = max((x @ w.mT + b), 0)

Tiles come by cp.async into swizzled shared memory, stages ahead of the warps that multiply them on the tensor
cores; a plain kernel serves operands of different types. Either applies the epilogue in fp32.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
from cutlass.cute.nvgpu import cpasync, warp
from cutlass import Float32

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
    """Warps have 16 rows and columns at least; accumulators stay in registers, stages in shared memory. One product
    alone is added up from parts, and only where tiles are few."""
    tile_m, tile_n = config["tile_m"], config["tile_n"]
    warps_m, warps_n, split = config["warps_m"], config["warps_n"], config["split_k"]
    sums = tile_m * tile_n * 1 // (32 * warps_m * warps_n)
    smem = shared_bytes((tile_m, tile_n, config["tile_k"]), config["stages"])
    few = split * math.prod(workload.outputs[0].shape) <= 432 * tile_m * tile_n and 1 == 1
    fits = tile_m >= 16 * warps_m and tile_n >= 16 * warps_n and sums <= 128 and smem <= 166912
    return fits and (split == 1 or few)


def shared_bytes(tile_shape_mnk, stages):
    """Of the operands' stages, or of a tile of results where that is more."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    rows = tile_m * 1 + tile_n * 1
    return max(stages * rows * tile_k * 2, tile_m * (tile_n * 4 + 16))


def workspace(workload, config):
    """What one kernel leaves for the next: parts of results, operands as TMA can read them."""
    inputs = workload.inputs
    results = (1, inputs[0].shape[0], inputs[1].shape[0])
    split = config["split_k"]
    wanted = [("partials", "f32", (split, *results) if split > 1 else (1, 1, 1, 1))]
    return wanted


def epilogue(acc, b):
    """max((x @ w.mT + b), 0), of vectors in fp32."""
    return cute.where(acc + b < 0.0, 0.0, acc + b)


@cute.jit
def tile_at(index: cutlass.Int32, across_mn: cutlass.Constexpr, group: cutlass.Constexpr, along_n: cutlass.Constexpr):
    """(row, column, batch) of the ``index``-th of ``across_mn`` tiles a batch.

    Tiles are walked in bands ``group`` tiles high, column by column (``along_n``: in bands as wide, row by row), so
    that those in flight at one time share operands in L2.
    """
    high, wide = (across_mn[1], across_mn[0]) if along_n else across_mn
    batch, rest = index // (high * wide), index % (high * wide)
    band, rest = rest // (group * wide), rest % (group * wide)
    height = cutlass.min(high - band * group, group)
    i, j = band * group + rest % height, rest // height
    row, column = (j, i) if along_n else (i, j)
    return row, column, batch


@cute.jit
def next_stage(stage: cutlass.Int32, phase: cutlass.Int32, stages: cutlass.Constexpr):
    """The pipeline's next stage; its barriers' phase flips each time round."""
    stage = stage + 1
    if stage == stages:
        stage = 0
        phase = phase ^ 1
    return stage, phase


@cute.jit
def stage_after(stage: cutlass.Int32, phase: cutlass.Int32, steps: cutlass.Int32, stages: cutlass.Constexpr):
    """The pipeline's stage ``steps`` on."""
    stage = stage + steps
    phase = phase ^ (stage // stages & 1)
    return stage % stages, phase


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
    """``mX`` (m, n, batch; stride 0 where it is broadcast) at a thread's positions ``cX`` of the tile at (row, column).

    Positions past the edge read the last element. ``by_pairs``: neighbours in ``cX`` are neighbours in n.
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
    """Can two neighbours in n be loaded at once? Host arithmetic: shapes and strides are Python ints."""
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
    """Stores a thread's results where they lie inside the matrix."""
    for e in cutlass.range_constexpr(cute.size(rC)):
        i, j = cC[e]
        if row + i < shape_mn[0] and column + j < shape_mn[1]:
            mC[row + i, column + j, batch] = rC[e]


def widest(x, along):
    """Neighbours along a mode of ``x`` that one load of up to 16 bytes takes. Shapes and strides are Python ints."""
    if x.stride[along] != 1:
        return 1
    pitches = leaves([x.stride[d] for d in range(3) if d != along])
    return math.gcd(128 // x.element_type.width, cute.size(x, mode=[along]), *pitches)


def leaves(numbers):
    return [leaf for n in numbers for leaf in ([n] if isinstance(n, int) else leaves(n))]


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
    """Starts to copy a tile of ``mX`` (rows, k, batch) to a stage, by vectors of ``vec`` neighbours in k (``along_k``)
    or in rows; threads next to each other read neighbours in memory. ``whole``: no tile ends past k."""
    rows, tile_k = cute.size(sX, mode=[0]), cute.size(sX, mode=[1])
    size, k = cute.size(mX, mode=[0]), cute.size(mX, mode=[1])
    first = cute.slice_(sX.layout, (None, None, 0))
    across = (tile_k if along_k else rows) // vec
    bits = vec * mX.element_type.width
    for turn in cutlass.range_constexpr(cute.ceil_div(rows * tile_k, vec * threads)):
        at = tidx + turn * threads
        if at < rows * tile_k // vec or (turn + 1) * threads * vec <= rows * tile_k:
            near, far = at % across, at // across
            r, c = (far, near * vec) if cutlass.const_expr(along_k) else (near * vec, far)
            to = vector_at(sX.iterator + (cute.crd2idx((r, c), first) + stage * (rows * tile_k)), vec)
            if whole or k_tile * tile_k + c < k:
                if cutlass.const_expr(along_k):
                    gX = cute.flat_divide(mX[cutlass.min(tile * rows + r, size - 1), None, batch], (vec,))
                    source = gX[None, k_tile * (tile_k // vec) + near]
                else:
                    gX = cute.flat_divide(mX[None, k_tile * tile_k + c, batch], (vec,))
                    source = gX[None, cutlass.min(tile * (rows // vec) + near, size // vec - 1)]
                if cutlass.const_expr(bits >= 32):
                    by = cpasync.LoadCacheMode.GLOBAL if bits == 128 else cpasync.LoadCacheMode.ALWAYS
                    cute.copy(
                        cute.make_copy_atom(cpasync.CopyG2SOp(cache_mode=by), mX.element_type, num_bits_per_copy=bits),
                        source, to,
                    )
                else:
                    to[0] = source[0]
            else:
                to.fill(0.0)


def firsts_of(layouts):
    """Where each begins, one after another."""
    firsts = [0]
    for layout in layouts:
        firsts.append(firsts[-1] + cute.size(layout))
    return firsts


def vector_at(pointer, vec):
    return cute.make_tensor(pointer.align(vec * pointer.dtype.width // 8), cute.make_layout(vec))


def halves_of(fragment):
    """(high, low) of a fragment's fp32 numbers, both tf32: together they hold 22 bits."""
    high, low = (cute.make_rmem_tensor(cute.make_layout(fragment.shape), cutlass.Int32) for _ in range(2))
    rounded = cute.recast_tensor(high, Float32)
    for e in range(cute.size(fragment)):
        high[e] = cutlass.Int32(cute.arch.cvt_f32_tf32(fragment[e]))
        low[e] = cutlass.Int32(cute.arch.cvt_f32_tf32(fragment[e] - rounded[e]))
    return tuple(cute.recast_tensor(x, cutlass.TFloat32) for x in (high, low))


def reader(fragment, sX, mma, tidx, left, along_k):
    """What brings blocks of a fragment from shared memory: a function of the block of k and the slot."""
    if sX.element_type.width == 16:
        atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(not along_k, 4), sX.element_type)
        copy = (cute.make_tiled_copy_A if left else cute.make_tiled_copy_B)(atom, mma)
        thread = copy.get_slice(tidx)
        source, target = thread.partition_S(sX), thread.retile(fragment)
        return lambda block, slot: cute.copy(copy, source[None, None, block, slot], target[None, None, block])
    rows, tile_k = cute.size(sX, mode=[0]), cute.size(sX, mode=[1])
    places, thread = cute.make_identity_tensor((rows, tile_k)), mma.get_slice(tidx)
    places = thread.partition_A(places) if left else thread.partition_B(places)
    first = cute.slice_(sX.layout, (None, None, 0))

    def one_by_one(block, slot):
        for e in range(cute.size(fragment[None, None, block])):
            r, c = places[None, None, block][e]
            at = cute.crd2idx((r, c), first) + slot * (rows * tile_k)
            fragment[None, None, block][e] = vector_at(sX.iterator + at, 1)[0]

    return one_by_one


@cute.kernel
def mma_kernel(
    lefts: tuple,
    rights: tuple,
    mC: cute.Tensor,
    eB: cute.Tensor,
    mma: cute.TiledMma,
    layouts: tuple,
    pairs: cutlass.Constexpr,
    vecs: cutlass.Constexpr,
    along_k: cutlass.Constexpr,
    vec_c: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    parts: cutlass.Constexpr,
    group: cutlass.Constexpr,
    along_n: cutlass.Constexpr,
    room: cutlass.Constexpr,
):
    """A block computes a tile of the result, over one of ``parts`` of k. ``layouts`` are the operands' in shared
    memory; each is loaded by vectors of ``vecs``, ``along_k`` or along its rows."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    k = cute.size(lefts[0], mode=[1])
    dtype, exact = lefts[0].element_type, lefts[0].element_type.width == 32
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    across_mn = (cute.ceil_div(m, tile_m), cute.ceil_div(n, tile_n))
    i, j, batch = tile_at(bidx, across_mn, group, along_n)
    row, column = i * tile_m, j * tile_n
    k_tiles = cute.ceil_div(cute.ceil_div(k, tile_k), parts)
    k_first, of = batch // (batches // parts) * k_tiles, batch % (batches // parts)
    whole = k % (tile_k * parts) == 0

    smem = utils.SmemAllocator()
    memory = smem.allocate(room, 128)  # of the stages, and then of the results on their way out
    mXs, beginning = (*lefts, *rights), cute.recast_ptr(memory, dtype=dtype)
    sXs = [cute.make_tensor(beginning + first, layout) for first, layout in zip(firsts_of(layouts), layouts)]

    thr_mma = mma.get_slice(tidx)
    sAs, sBs = ([s for o, s in enumerate(sXs) if (o < len(lefts)) == left] for left in (True, False))
    rAs = [mma.make_fragment_A(thr_mma.partition_A(s[None, None, 0])) for s in sAs]
    rBs = [mma.make_fragment_B(thr_mma.partition_B(s[None, None, 0])) for s in sBs]
    rAs, rBs = ([cute.recast_tensor(r, dtype) for r in some] for some in (rAs, rBs))  # fp32 is no tf32 yet
    accs = [cute.make_rmem_tensor(mma.partition_shape_C((tile_m, tile_n)), Float32) for _ in pairs]
    steps = [cute.make_rmem_tensor(acc.layout, Float32) for acc in accs] if exact else []  # of one step along k each
    for acc in accs:
        acc.fill(0.0)
    read = [
        reader(r, s, mma, tidx, o < len(lefts), along_k[o]) for o, (r, s) in enumerate(zip((*rAs, *rBs), sXs))
    ]

    k_blocks = cute.size(rAs[0], mode=[2])
    for stage in cutlass.range_constexpr(stages - 1):
        if cutlass.const_expr(stage < k_tiles):
            for o in cutlass.range_constexpr(len(mXs)):
                fill_stage(
                    mXs[o], sXs[o], (i, j)[o >= len(lefts)], k_first + stage, of, stage, tidx, cute.size(mma), vecs[o],
                    along_k[o], whole,
                )
        cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(stages - 2)
    cute.arch.sync_threads()
    slot, free = cutlass.Int32(0), cutlass.Int32(stages - 1)
    for bring in read:
        bring(0, slot)
    for k_tile in cutlass.range(k_tiles, unroll=1):
        for k_block in cutlass.range_constexpr(k_blocks):
            if cutlass.const_expr(k_block == k_blocks - 1):
                cute.arch.cp_async_wait_group(stages - 2)
                cute.arch.sync_threads()
                free = slot
                slot = slot + 1
                if slot == stages:
                    slot = 0
            ahead = (k_block + 1) % k_blocks  # what the tensor cores need next is on its way while they work
            for bring in read:
                if cutlass.const_expr(ahead > 0 or k_tiles > 1):
                    bring(ahead, slot)
            if cutlass.const_expr(k_block == 0):
                if k_tile + stages - 1 < k_tiles:
                    for o in cutlass.range_constexpr(len(mXs)):
                        fill_stage(
                            mXs[o], sXs[o], (i, j)[o >= len(lefts)], k_first + k_tile + stages - 1, of, free, tidx,
                            cute.size(mma), vecs[o], along_k[o], whole,
                        )
                cute.arch.cp_async_commit_group()
            now = [r[None, None, k_block] for r in (*rAs, *rBs)]
            if cutlass.const_expr(exact):
                now = [halves_of(r) for r in now]
                if cutlass.const_expr(k_block == 0):
                    for step in steps:
                        step.fill(0.0)
            for p in cutlass.range_constexpr(len(pairs)):
                a, b = now[pairs[p][0]], now[len(lefts) + pairs[p][1]]
                if cutlass.const_expr(exact):
                    for left, right in ((a[1], b[0]), (a[0], b[1]), (a[0], b[0])):
                        cute.gemm(mma, steps[p], left, right, steps[p])
                else:
                    cute.gemm(mma, accs[p], a, b, accs[p])
        for acc, step in zip(accs, steps):
            acc.store(acc.load() + step.load())
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()

    # Results go through shared memory, so that neighbours in a row leave together.
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
        if cutlass.const_expr(exact):
            k_last = cutlass.min((k_first + k_tiles) * tile_k, k)
            values = [
                recomputed(
                    value, value * 0.0, lefts[a], rights[b], cC, row, column, of, k_first * tile_k, k_last, (m, n)
                )
                for value, (a, b) in zip(values, pairs)
            ]
        if cutlass.const_expr(parts > 1):
            result = values[0]
        else:
            result = epilogue(
                *values,
                fetch(eB, cC, row, column, batch, (m, n), True),
            )
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
def multiply_by_mma(
    lefts: tuple,
    rights: tuple,
    mC: cute.Tensor,
    eB: cute.Tensor,
    stream: cuda.CUstream,
    pairs: cutlass.Constexpr,
    parts: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    warps_mn: cutlass.Constexpr,
    raster: cutlass.Constexpr,
    group: cutlass.Constexpr,
):
    tile_m, tile_n, tile_k = tile_shape_mnk
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    k_tiles = cute.ceil_div(cute.ceil_div(cute.size(lefts[0], mode=[1]), tile_k), parts)
    stages = max(min(stages, k_tiles), 2)
    mXs, rows = (*lefts, *rights), [tile_m] * len(lefts) + [tile_n] * len(rights)
    along_k = tuple(not dense_in_rows(x) for x in mXs)
    vecs = tuple(widest(x, 1 if along else 0) for x, along in zip(mXs, along_k))
    dtype = lefts[0].element_type
    layouts = [
        cute.tile_to_shape(swizzled(rows_, tile_k, dtype.width, along), (rows_, tile_k, stages), (0, 1, 2))
        for rows_, along in zip(rows, along_k)
    ]
    op = warp.MmaTF32Op((16, 8, 8)) if dtype == Float32 else warp.MmaF16BF16Op(dtype, Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(
        op, cute.make_layout((*warps_mn, 1)), permutation_mnk=(warps_mn[0] * 16, warps_mn[1] * 16, op.shape_mnk[2])
    )
    mma_kernel(
        lefts, rights, mC, eB, mma, tuple(layouts), pairs, vecs, along_k, widest(mC, 1), tile_shape_mnk, stages,
        parts, group, raster == "n", shared_bytes(tile_shape_mnk, stages),
    ).launch(
        grid=[cute.ceil_div(m, tile_m) * cute.ceil_div(n, tile_n) * batches, 1, 1],
        block=[warps_mn[0] * warps_mn[1] * 32, 1, 1],
        min_blocks_per_mp=1,
        stream=stream,
    )


def alike(operands):
    """Are they of one type that the tensor cores multiply, and of one length along k?"""
    kinds, lengths = {x.element_type for x in operands}, {cute.size(x, mode=[1]) for x in operands}
    return len(kinds) == 1 and len(lengths) == 1 and kinds <= {cutlass.BFloat16, cutlass.Float16, Float32}


def dense_in_rows(x):
    return x.stride[0] == 1 and x.stride[1] != 1


def swizzled(rows, tile_k, width, along_k):
    """The smallest piece of a tile whose 16-byte parts lie so that eight of them, one below the other, are in different
    banks."""
    near, limit = tile_k if along_k else rows, 1024 // width
    near = min(limit, near & -near)
    bits = (near * width // 128).bit_length() - 1
    size = (128 // width).bit_length() - 1
    shape, stride = ((8, near), (near, 1)) if along_k else ((near, 8), (1, near))
    return cute.make_composed_layout(cute.make_swizzle(bits, size, 3), 0, cute.make_layout(shape, stride=stride))


@cute.jit
def add_up(
    mPart: cute.Tensor,
    mC: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
):
    """``mC`` (m, n, batch): what the epilogue makes of ``mPart`` (m, n, batch, part), added up in fp32."""
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    vec = 4 if lies_in_pairs(mC, n) and n % 4 == 0 else 1
    total_kernel(mPart, mC, extras, sizes, vec).launch(
        grid=[cute.ceil_div(m * batches * n // vec, 256), 1, 1], block=[256, 1, 1], stream=stream
    )


@cute.kernel
def total_kernel(
    mPart: cute.Tensor,
    mC: cute.Tensor,
    extras: tuple,
    sizes: cutlass.Constexpr,
    vec: cutlass.Constexpr,
):
    """Adds up ``mPart`` (m, n, batch, part), ``vec`` neighbours in n a thread, and applies the epilogue."""
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
def multiply_plainly(
    lefts: tuple,
    rights: tuple,
    mC: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
):
    """``mC`` (m, n, batch) of the products of ``pairs``: of ``lefts`` (m, k, batch) and ``rights`` (n, k, batch)."""
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    dense_in_k = tuple(tuple(x.stride[1] == 1 for x in side) for side in (lefts, rights))
    plain_kernel(lefts, rights, mC, extras, sizes, pairs, dense_in_k).launch(
        grid=[cute.ceil_div(m, 64) * cute.ceil_div(n, 64) * batches, 1, 1], block=[256, 1, 1], stream=stream
    )


@cute.kernel
def plain_kernel(
    lefts: tuple,
    rights: tuple,
    mC: cute.Tensor,
    extras: tuple,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
    dense_in_k: cutlass.Constexpr,
):
    """A block computes 64×64 results, a thread 4×4 of them, in steps of 16 along k, one product after another."""
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
    accs = [cute.make_rmem_tensor(16, Float32) for _ in pairs]  # row by row
    for p in cutlass.range_constexpr(len(pairs)):
        acc, (left, right) = accs[p], pairs[p]
        k = cute.size(lefts[left], mode=[1])
        acc.fill(0.0)
        for start in cutlass.range(0, k, 16, unroll=1):
            load_slab(lefts[left], sA, row, start, batch, m, k, dense_in_k[0][left])
            load_slab(rights[right], sB, column, start, batch, n, k, dense_in_k[1][right])
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
    """64 rows and 16 steps of k, in fp32; zeros past the edge. Neighbouring threads read neighbours in memory."""
    tidx, _, _ = cute.arch.thread_idx()
    for turn in cutlass.range_constexpr(4):
        at = tidx + turn * 256
        i, j = (at // 16, at % 16) if cutlass.const_expr(dense_in_k) else (at % 64, at // 64)
        value = Float32(0.0)
        if row + i < rows and start + j < k:
            value = Float32(mX[row + i, start + j, batch])
        sX[i, j] = value


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
    mA = cute.make_tensor(
        x.iterator, cute.make_layout((m, x.shape[1], batches), stride=(x.stride[0], x.stride[1], 0))
    )
    mB = cute.make_tensor(
        w.iterator, cute.make_layout((n, w.shape[1], batches), stride=(w.stride[0], w.stride[1], 0))
    )
    mC = cute.make_tensor(
        out.iterator, cute.make_layout((m, n, batches), stride=(out.stride[0], out.stride[1], 0))
    )
    eB = cute.make_tensor(b.iterator, cute.make_layout((m, n, batches), stride=(0, b.stride[0], 0)))
    lefts, rights = (mA,), (mB,)
    extras, sizes = (eB,), ()
    if cutlass.const_expr(alike((*lefts, *rights))):
        if cutlass.const_expr(split_k > 1 and cute.size(lefts[0], mode=[1]) > tile_k):  # one tile is not cut
            mPart = cute.make_tensor(
                partials.iterator, cute.make_layout((m, n, batches * split_k), stride=(n, 1, m * n))
            )
            multiply_by_mma(
                lefts, rights, mPart, eB, stream, ((0, 0),), split_k, (tile_m, tile_n, tile_k), stages, (warps_m, warps_n), raster, group,
            )
            mPart = cute.make_tensor(
                partials.iterator,
                cute.make_layout((m, n, batches, split_k), stride=(n, 1, m * n, batches * m * n)),
            )
            add_up(mPart, mC, extras, stream, sizes)
        else:
            multiply_by_mma(
                lefts, rights, mC, eB, stream, ((0, 0),), 1, (tile_m, tile_n, tile_k), stages, (warps_m, warps_n), raster, group,
            )
    else:
        multiply_plainly(lefts, rights, mC, extras, stream, sizes, ((0, 0),))

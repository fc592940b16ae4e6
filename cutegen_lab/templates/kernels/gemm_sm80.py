"""Matrix products for the tensor cores of GPUs before Hopper: mma.sync, fed by ldmatrix from shared memory, which
cp.async fills several stages ahead.

In place of rows past an edge, the last row is read; its products there are not stored. Past the end of k both operands
are zero. Each fp32 operand is split into two TF32 halves, and three products of halves are added. Their sum restarts at
each step along k, because the tensor cores truncate, which would show in long sums (Ootomo and Yokota, "Recovering
single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", 2022, §3). If TF32
is allowed, operands are rounded to TF32 and multiplied once.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
from cutlass import Float32
from cutlass.cute.nvgpu import cpasync, warp

from cutegen_lab.templates.kernels.device.epilogue_access import fetch
from cutegen_lab.templates.kernels.device.fp32_recompute import recomputed
from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait
from cutegen_lab.templates.kernels.device.tile_walk import tile_at
from cutegen_lab.templates.kernels.device.vectors import widest
from cutegen_lab.templates.kernels.device.views import view  # noqa: F401 - for launch
from cutegen_lab.templates.kernels.limits.gemm_sm80 import shared_bytes
from cutegen_lab.templates.kernels.plain_matmul import multiply_plainly
from cutegen_lab.templates.kernels.split_k_reduce import add_up


def epilogue(acc):
    """Placeholder, replaced in a generated module: a function of one fp32 vector per pair, ``extras`` and ``sizes``."""
    return acc


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

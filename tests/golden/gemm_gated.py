"""tested: matrix product.

out = ((x @ g.mT) · sigmoid(x @ g.mT)) · (x @ u.mT)

One warp loads tiles by TMA into swizzled shared memory, several stages ahead of the warpgroups that multiply
them; a plain kernel serves small products and operands that TMA cannot address. Both apply the epilogue in
fp32.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import cutlass.utils.hopper_helpers as sm90
from cutlass import Float32
from cutlass.cute.nvgpu import cpasync, warp, warpgroup

TUNABLE = {
    "tile_m": (64, 128, 256),
    "tile_n": (32, 64, 128, 192, 256),
    "tile_k": (64, 128),
    "stages": (2, 3, 4, 5, 6, 7, 8),
    "cluster_m": (1, 2),
    "cluster_n": (1, 2),
    "schedule": ('cooperative', 'pingpong'),
    "raster": ('m', 'n'),
    "group": (1, 2, 4, 8, 16),
    "split_k": (1, 2, 4, 8, 16),
}


def constraints(config, workload, device):
    results = math.prod(workload.outputs[0].shape)
    return not why_not(config, results, "16 bits", 2, (1, 2))


def workspace(workload, config):
    """Workspace: partial results of split-K, and copies of operands that the kernel cannot read."""
    inputs = workload.inputs
    results = (1, inputs[0].shape[0], inputs[1].shape[0])
    split = config["split_k"]
    wanted = [("partials", "f32", (split, *results) if split > 1 else (1, 1, 1, 1))]
    return wanted


def fast_sigmoid(x):
    """Uses the hardware's exponential. A single tanh would be cheaper, but is wrong by 1% at -9 on an H200."""
    return cute.math.rcp(1.0 + cute.math.exp(-x, fastmath=True), approx=True, ftz=True)


SMEM_BYTES = 232448  # per block: 227 KiB


EPI_STAGE = 2  # epilogue stages (pieces of results being stored) per team


RESIDENT = {1: 132, 2: 66, 3: 39, 4: 30, 6: 17, 8: 15}  # cluster size: number of clusters that an H200 runs together


ALL_STAGES = 8  # this value means: as many stages as fit


FULL = 264  # split-K is not used beyond this many blocks: two waves of an H200


# By kind of operands: legal tile_k, sums per product (fp32 halves: large terms of a step, their total, small terms;
# 8 bits: terms of a step, their total), bytes per element, and maximum number of registers per thread for the sums. The
# epilogue uses the remaining registers, and processes the totals piece by piece.
KINDS = {
    "16 bits": ((64, 128), 1, 2, 128),
    "fp32 halves": ((64,), 3, 2, 192),
    "8 bits": ((128,), 2, 1, 192),
    "TF32": ((32, 64), 1, 4, 128),
}


def groups_of(config):
    """Number of warpgroups that share a tile."""
    return 1 if config["schedule"] == "pingpong" else min(config["tile_m"] // 64, 2)


def stages_that_fit(tile_shape_mnk, consumers, loads, itemsize, beside=0):
    """Number of pipeline stages that fit a block's shared memory next to the epilogue stages and ``beside`` further
    bytes. ``loads``: tiles per stage, (left, right)."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    stage_bytes = (tile_m * loads[0] + tile_n * loads[1]) * tile_k * itemsize
    return (SMEM_BYTES - beside - 2048 - consumers * 64 * 128 * EPI_STAGE) // stage_bytes


def stages_of(config, kind, loads, beside=0):
    """:func:`stages_that_fit` for ``config``."""
    tile_shape_mnk = config["tile_m"], config["tile_n"], config["tile_k"]
    consumers = 2 if config["schedule"] == "pingpong" else groups_of(config)
    return stages_that_fit(tile_shape_mnk, consumers, loads, KINDS[kind][2], beside)


def beyond_room(config, kind, pairs, loads, beside=0):
    """The limit that a tile exceeds: registers for its sums or shared memory for its stages; "" if it fits."""
    _, sums, _, most = KINDS[kind]
    registers = config["tile_m"] * config["tile_n"] * sums * pairs // (128 * groups_of(config))
    if registers > most:
        return f"{registers} accumulators in a thread's registers (at most {most})"
    fit, stages = stages_of(config, kind, loads, beside), config["stages"]
    if fit < 2:
        return f"{SMEM_BYTES:,} bytes of shared memory hold {fit} stages of such tiles (at least 2 are needed)"
    if stages > fit and stages != ALL_STAGES:  # a higher bound gives the same kernel as ALL_STAGES
        return f"{stages} stages; {fit} fit {SMEM_BYTES:,} bytes of shared memory ({ALL_STAGES} means: as many as fit)"
    return ""


def why_not(config, results, kind="16 bits", pairs=1, loads=(1, 1)):
    """The limit that ``config`` exceeds, as text; "" if it is feasible. Accumulators must fit registers, at least two
    stages must fit shared memory, and split-K is for a single product with few tiles. ``results``: number of output
    elements. ``pairs``: number of products computed together."""
    crowded = beyond_room(config, kind, pairs, loads)
    if crowded:
        return crowded
    steps, tile, split = KINDS[kind][0], config["tile_m"] * config["tile_n"], config["split_k"]
    if config["tile_k"] not in steps:
        return f"tile_k of {config['tile_k']} (must be {' or '.join(map(str, steps))} for {kind})"
    if split > 1 and pairs > 1:
        return f"split_k of {split} with several products: split-K is for a single product"
    if split > 1 and split * results > FULL * tile:
        tiles = -(-results // tile)
        return f"split_k of {split} with {tiles} tiles: {split * tiles} blocks (at most {FULL})"
    return ""


def tma_view(x, dense_in):
    """A view of ``x`` (rows, columns, batch) that TMA can address, or None. ``x`` must be contiguous along one of the
    dimensions ``dense_in``, and every other stride a multiple of 16 bytes. A broadcast batch dimension gets size 1."""
    quantum = 128 // x.element_type.width
    sizes, strides = [*x.shape], [*x.stride]
    if not all(isinstance(number, int) for number in sizes + strides):
        return None  # a dimension without a single stride
    if strides[2] == 0:
        sizes[2] = 1
    dense = [d for d in dense_in if strides[d] == 1 and sizes[d] > 1] or [d for d in dense_in if sizes[d] == 1]
    others = [d for d in range(3) if [d] != dense[:1]]
    if not dense or any(strides[d] % quantum and sizes[d] > 1 for d in others):
        return None
    for d in range(3):
        if sizes[d] == 1:
            strides[d] = quantum if d in others else 1  # never used
            sizes[d] = 1 if d == 2 else cutlass.Int32(1)  # a static 1 would drop the dimension from the tensor map
    return cute.make_tensor(x.iterator, cute.make_layout(tuple(sizes), stride=tuple(strides)))


def tma_views(operands):
    """TMA views of all A operands, or all B operands: 16-bit ones in either layout, 8-bit ones contiguous along k, as
    wgmma requires. None if TMA cannot address one of them, or if there are none."""
    dense_in = {8: (1,), 16: (1, 0), 32: ()}
    views = tuple(tma_view(x, dense_in[x.element_type.width]) for x in operands)
    return None if None in views or not views else views


def fit_together(sides, operands):
    """Whether all operands have the same length along k, all A operands the same dtype and (as TMA views) the same
    layout, and all B operands too. The dtypes of A and B may differ if both have 8 bits."""
    dtypes = [{x.element_type for x in side} for side in sides]
    layouts = [{x.stride.index(1) for x in side} for side in sides]
    lengths = {cute.size(x, mode=[1]) for x in operands}
    both = {dtype if dtype.width > 8 else 8 for side in dtypes for dtype in side}
    return all(len(values) == 1 for values in (lengths, both, *dtypes, *layouts))


def aux_view(x):
    """A TMA view of tensor ``x`` of the epilogue; None if its rows are broadcast or TMA cannot address it."""
    whole = x.element_type.width in (16, 32) and x.stride[0] != 0
    return tma_view(x, (1,)) if whole else None


def aux_steps_of(views, c_dtype, tile_shape_mnk, epi_rows, stage_bits):
    """(epilogue tile, with rows of at most 128 bytes; number of auxiliary loads that fit a stage; the pipeline's
    steps). A step is (bytes, loads), a load is (row and column of its piece in the tile, index of its tensor)."""
    tile_m, tile_n, _ = tile_shape_mnk
    numbers = [o for o, x in enumerate(views) if x is not None]
    columns = min(tile_n, 1024 // max([c_dtype.width] + [views[o].element_type.width for o in numbers]))
    slots = stage_bits // (epi_rows * 1024)
    places = [(i, j, o) for i in range(tile_m // epi_rows) for j in range(tile_n // columns) for o in numbers]
    aux_steps = []
    for begin in range(0, len(places), slots):
        step = [places[at] for at in range(begin, min(begin + slots, len(places)))]
        step_bits = 0
        for _, _, o in step:
            step_bits += epi_rows * columns * views[o].element_type.width
        aux_steps.append((step_bits // 8, tuple(step)))
    return (epi_rows, columns), slots, tuple(aux_steps)


def aux_layout(dtype, epi_tile, slots, stages, stage_bits):
    """Shared-memory layout of a tensor's auxiliary loads: (rows, columns, slot, stage)."""
    one = sm90.make_smem_layout_epi(dtype, utils.LayoutEnum.ROW_MAJOR, epi_tile, 1)
    apart = epi_tile[0] * 1024 // dtype.width, stage_bits // dtype.width
    rows, columns = (cute.get(one.outer, mode=[d]) for d in range(2))
    outer = cute.make_layout((rows.shape, columns.shape, slots, stages), stride=(rows.stride, columns.stride, *apart))
    return cute.make_composed_layout(one.inner, 0, outer)


def place_of(piece, aux_steps):
    """(slot of ``piece`` in its step, last slot of this step)."""
    return next((step.index(piece), len(step) - 1) for _, step in aux_steps if piece in step)


def read_aux(sE, from_shared, thread, slot, stage, cC):
    """Copies a thread's part of the auxiliary load in ``slot`` of ``stage`` to registers, in the order of ``cC``."""
    thr_from_shared = from_shared.get_slice(thread)
    rE = cute.make_rmem_tensor(cute.size(cC), sE.element_type)
    tCrE = thr_from_shared.retile(cute.make_tensor(rE.iterator, cute.make_layout(cC.shape)))
    cute.copy(from_shared, thr_from_shared.partition_S(sE)[None, None, None, slot, stage], tCrE)
    return rE


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


@cute.jit
def next_stage(stage: cutlass.Int32, phase: cutlass.Int32, stages: cutlass.Constexpr):
    """The pipeline's next stage. The phase of its mbarriers flips at each wrap-around."""
    stage = stage + 1
    if stage == stages:
        stage = 0
        phase = phase ^ 1
    return stage, phase


@cute.jit
def stage_after(stage: cutlass.Int32, phase: cutlass.Int32, steps: cutlass.Int32, stages: cutlass.Constexpr):
    """The pipeline's stage and phase after ``steps`` more steps."""
    stage = stage + steps
    phase = phase ^ (stage // stages & 1)
    return stage % stages, phase


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


make_mma = sm90.make_trivial_tiled_mma  # replaced for TF32 by tf32_mma


views_of = tma_views  # replaced for TF32 by tf32_views


restore = None  # replaced for split fp32 by restored()


@cute.jit
def multiply(
    mAs: tuple,
    mBs: tuple,
    by_tma: tuple,
    fp32_operands: tuple,
    mC: cute.Tensor,
    partials: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
    split_k: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    cluster_shape_mn: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    schedule: cutlass.Constexpr,
    raster: cutlass.Constexpr,
    group: cutlass.Constexpr,
):
    """``mC`` (m, n, batch): the epilogue of products ``pairs`` of ``mAs`` (m, k, batch) and ``mBs`` (n, k, batch).
    ``by_tma``: the A and B operands in the form that TMA loads. A plain kernel multiplies what TMA cannot address.
    ``partials``: workspace for the results of ``split_k`` parts of k."""
    ready, k = (views_of(by_tma[0]), views_of(by_tma[1])), cute.size(mAs[0], mode=[1])
    if cutlass.const_expr(None not in ready and fit_together(ready, (*mAs, *mBs))):
        terms = terms_of(pairs, len(fp32_operands) > 0)
        if cutlass.const_expr(split_k > 1 and k > tile_shape_mnk[2]):  # one step is not split
            m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
            layout = cute.make_layout((m, n, batches * split_k), stride=(n, 1, m * n))
            mPart = cute.make_tensor(partials.iterator, layout)
            multiply_by_wgmma(
                *ready, mPart, fp32_operands, extras, stream, sizes, k, terms, split_k, tile_shape_mnk,
                cluster_shape_mn, stages, schedule, raster, group, None, None,
            )
            layout = cute.make_layout((m, n, batches, split_k), stride=(n, 1, m * n, batches * m * n))
            add_up(cute.make_tensor(partials.iterator, layout), mC, extras, stream, sizes)
        else:
            multiply_by_wgmma(
                *ready, mC, fp32_operands, extras, stream, sizes, k, terms, 1, tile_shape_mnk,
                cluster_shape_mn, stages, schedule, raster, group, None, None,
            )
    else:
        multiply_plainly(mAs, mBs, mC, extras, stream, sizes, pairs)


@cute.jit
def multiply_by_wgmma(
    mAs: tuple,
    mBs: tuple,
    mC: cute.Tensor,
    fp32_operands: tuple,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    k: cutlass.Constexpr,
    terms: cutlass.Constexpr,
    split_k: cutlass.Constexpr,
    tile_shape_mnk: cutlass.Constexpr,
    cluster_shape_mn: cutlass.Constexpr,
    stages: cutlass.Constexpr,
    schedule: cutlass.Constexpr,
    raster: cutlass.Constexpr,
    group: cutlass.Constexpr,
    mParts: cute.Tensor,
    rows: cutlass.Constexpr,
):
    """``rows`` and ``mParts`` are None unless the epilogue reduces rows. ``rows``: shape of the buffers for values that
    a block's warps receive from other blocks, and which of ``extras`` may be auxiliary loads."""
    tile_m, tile_n, tile_k = tile_shape_mnk
    cluster_m, cluster_n = cluster_shape_mn
    a_dtype, b_dtype, c_dtype = mAs[0].element_type, mBs[0].element_type, mC.element_type
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    batches = batches // split_k
    teams = 2 if schedule == "pingpong" else 1
    team_groups = 1 if teams == 2 else min(tile_m // 64, 2)
    places, ahead = ((0, 0, 0, 0), None) if rows is None else rows
    loads, room = (len(mAs), len(mBs)), math.prod(places) * 4
    ab_stage = min(stages, stages_that_fit(tile_shape_mnk, teams * team_groups, loads, a_dtype.width // 8, room))
    aligned = tma_view(mC, (1,)) if n * c_dtype.width % 128 == 0 else None  # TMA stores whole units of 16 bytes
    if cutlass.const_expr(ahead is None):  # two teams need no auxiliary loads: one computes while the other waits
        ahead = range(len(extras) if aligned is not None and split_k == 1 and teams == 1 else 0)
    views = tuple(aux_view(x) if o in ahead else None for o, x in enumerate(extras))
    if cutlass.const_expr(len([x for x in views if x is not None]) > ab_stage):  # all loads of a piece must fit
        views = tuple(None for _ in extras)
    stage_bits = max(tile_m * len(mAs), tile_n * len(mBs)) * tile_k * a_dtype.width
    epi_tile, slots, aux = aux_steps_of(views, c_dtype, tile_shape_mnk, 64 * team_groups, stage_bits)
    major_a, major_b = utils.LayoutEnum.from_tensor(mAs[0]), utils.LayoutEnum.from_tensor(mBs[0])
    fused_b = fused_b_of(mAs, mBs, fp32_operands, tile_shape_mnk, major_b)
    if cutlass.const_expr(fused_b > 1):
        terms = ((0, 0, 0),)
    promoted = len(terms) if a_dtype.width == 8 else len(fp32_operands)
    majors = major_a.sm90_mma_major_mode(), major_b.sm90_mma_major_mode()
    mma, epi_mma = (
        make_mma(a_dtype, b_dtype, *majors, Float32, (team_groups, 1, 1), tiler_mn=(64, columns))
        for columns in (tile_n * fused_b, epi_tile[1])
    )
    layout_a = sm90.make_smem_layout_a(major_a, tile_shape_mnk, a_dtype, ab_stage * len(mAs))
    layout_b = sm90.make_smem_layout_b(major_b, tile_shape_mnk, b_dtype, ab_stage * len(mBs))
    wide_mnk = (tile_m, tile_n * fused_b, tile_k)
    layout_wide = sm90.make_smem_layout_b(major_b, wide_mnk, b_dtype, ab_stage * len(mBs) // fused_b)
    layout_c = sm90.make_smem_layout_epi(c_dtype, utils.LayoutEnum.ROW_MAJOR, epi_tile, EPI_STAGE * teams)
    stage_a, stage_b, stage_c = (cute.slice_(layout, (None, None, 0)) for layout in (layout_a, layout_b, layout_c))
    shares = 1 if mParts is not None else cluster_n  # parts of a tile of A, one loaded by each block
    by_tma_a = [
        cpasync.make_tiled_tma_atom(load_op(cluster_n), x, stage_a, (tile_m, tile_k), num_multicast=shares) for x in mAs
    ]
    by_tma_b = [
        cpasync.make_tiled_tma_atom(load_op(cluster_m), x, stage_b, (tile_n, tile_k), num_multicast=cluster_m)
        for x in mBs
    ]
    tma_c, tC = None, None
    if cutlass.const_expr(aligned is not None):
        tma_c, tC = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), aligned, stage_c, epi_tile)
    layouts_e = tuple(
        None if x is None else aux_layout(x.element_type, epi_tile, slots, ab_stage, stage_bits) for x in views
    )
    by_tma_e = [
        (None, None)
        if x is None
        else cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileG2SOp(), x, cute.slice_(layout, (None, None, 0, 0)), epi_tile
        )
        for x, layout in zip(views, layouts_e)
    ]
    clusters = cute.ceil_div(m, tile_m * cluster_m) * cute.ceil_div(n, tile_n * cluster_n) * batches * split_k
    operands = unzipped(by_tma_a), unzipped(by_tma_b)
    epi_args = fp32_operands, extras, mParts, *unzipped(by_tma_e), layouts_e
    layouts = layout_a, layout_b, layout_wide, layout_c
    tiling = (m, n, k, batches), tile_shape_mnk, epi_tile, cluster_shape_mn, teams
    result, mmas, dtypes = (tma_c, tC, mC), (mma, epi_mma), (a_dtype, b_dtype, c_dtype)
    walk, summed = (group, raster == "n"), (terms, promoted, fused_b, split_k)
    gemm_kernel(operands, result, epi_args, mmas, layouts, dtypes, sizes, aux, tiling, walk, summed, places).launch(
        grid=[min(clusters, RESIDENT[cluster_m * cluster_n]) * cluster_m * cluster_n, 1, 1],
        block=[(teams * team_groups + 1) * 128, 1, 1],
        cluster=[cluster_m * cluster_n, 1, 1],
        min_blocks_per_mp=1,  # tells ptxas how many registers setmaxregister can redistribute
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


def terms_of(pairs, halved):
    """(left, right, sum) of each product that the wgmma kernel adds up. With fp16 halves, operands come in pairs (high,
    low), and the products of a high and a low half follow, in separate sums."""
    if not halved:
        return tuple((left, right, number) for number, (left, right) in enumerate(pairs))
    high = [(2 * left, 2 * right, number) for number, (left, right) in enumerate(pairs)]
    low = [
        term
        for left, right, number in high
        for term in ((left, right + 1, number + len(pairs)), (left + 1, right, number + len(pairs)))
    ]
    return (*high, *low)


def fused_b_of(mAs, mBs, fp32_operands, tile_shape_mnk, major_b):
    """Number of B operands that one wgmma multiplies as a single wide tile. Their tiles must be adjacent in shared
    memory: rows, or columns if these are contiguous, must fill whole rows of the widest swizzle."""
    _, tile_n, tile_k = tile_shape_mnk
    one_left = len(mAs) == 1 and not fp32_operands and len(mBs) * tile_n <= 256
    row_bits, column_bits = (length * mBs[0].element_type.width for length in (tile_k, tile_n))
    whole = column_bits % 1024 == 0 if major_b == utils.LayoutEnum.COL_MAJOR else row_bits == 1024
    return len(mBs) if one_left and whole else 1


def unzipped(pairs):
    """(atoms, tensors) of ``pairs``."""
    return tuple(atom for atom, _ in pairs), tuple(x for _, x in pairs)


def load_op(blocks):
    """A TMA load for one block, or multicast to several blocks of a cluster."""
    return cpasync.CopyBulkTensorTileG2SMulticastOp() if blocks > 1 else cpasync.CopyBulkTensorTileG2SOp()


def load(tma, tX, at, slot, barrier, mask=None):
    """Starts the TMA copy of tile ``at`` to ``slot``. ``tX``: the (shared, global) views from ``tma_partition``."""
    smem, gmem = tX
    cute.copy(tma, gmem[(None, *at)], smem[(None, *slot)], tma_bar_ptr=barrier, mcast_mask=mask)


@cute.kernel
def gemm_kernel(
    operands: tuple,
    result: tuple,
    epi_args: tuple,
    mmas: tuple,
    layouts: tuple,
    dtypes: cutlass.Constexpr,
    sizes: cutlass.Constexpr,
    aux: cutlass.Constexpr,
    tiling: cutlass.Constexpr,
    walk: cutlass.Constexpr,
    summed: cutlass.Constexpr,
    places: cutlass.Constexpr,
):
    """One warp, the producer, loads tiles of A and B by TMA. The consumer warpgroups multiply, as one team or as two
    teams that take tiles in turn. The kernel is persistent: a block takes tile after tile.

    ``operands`` and ``result``: TMA atoms and their tensors. ``epi_args``: ``fp32_operands`` (the originals of fp16
    halves), what the epilogue reads, and the atoms, tensors and layouts of its auxiliary loads (else None). ``summed``:
    the terms; ``promoted``: how many sums are added to fp32 totals after each step along k (fp32 halves, 8 bits);
    ``fused_b``: number of adjacent tiles of B that are multiplied as one; ``split_k``. ``mParts`` and ``places`` (shape
    of the buffers for values from other blocks) are for an epilogue that reduces rows: then blocks that share tiles of
    A load whole tiles in turn, since a tile need not divide into as many parts as there are blocks.
    """
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    ((tmas_a, mAs), (tmas_b, mBs)), (tma_c, tC, mC) = operands, result
    fp32_operands, extras, mParts, tmas_e, mEs, layouts_e = epi_args
    (mma, epi_mma), (layout_a, layout_b, layout_wide, layout_c) = mmas, layouts
    (m, n, k, batches), (tile_m, tile_n, tile_k), epi_tile, (cluster_m, cluster_n), teams = tiling
    (terms, promoted, fused_b, split_k), (group, along_n) = summed, walk
    cluster_size = cluster_m * cluster_n
    a_dtype, b_dtype, c_dtype = dtypes
    num_a, num_b, sums = len(mAs), len(mBs), 1 + max(term[2] for term in terms)
    ab_stage = cute.size(layout_a.outer, mode=[2]) // num_a
    team_groups = epi_tile[0] // 64  # warpgroups per team
    team_threads = team_groups * 128
    consumers = teams * team_groups
    in_turn = mParts is not None

    tidx, _, _ = cute.arch.thread_idx()
    warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    warpgroup_idx = cute.arch.make_warp_uniform(tidx // 128)
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    rank_m, rank_n = rank % cluster_m, rank // cluster_m

    if warp_idx == 0:
        for tma in (*tmas_a, *tmas_b, tma_c, *tmas_e):
            if cutlass.const_expr(tma is not None):
                cpasync.prefetch_descriptor(tma)

    @cute.struct
    class Storage:
        full: cute.struct.MemRange[cutlass.Int64, ab_stage]
        empty: cute.struct.MemRange[cutlass.Int64, ab_stage]
        a: cute.struct.Align[cute.struct.MemRange[a_dtype, cute.cosize(layout_a)], 1024]
        b: cute.struct.Align[cute.struct.MemRange[b_dtype, cute.cosize(layout_b)], 1024]
        c: cute.struct.Align[cute.struct.MemRange[c_dtype, cute.cosize(layout_c)], 1024]
        exchanged: cute.struct.Align[cute.struct.MemRange[Float32, math.prod(places)], 16]
        arrived: cute.struct.MemRange[cutlass.Int64, places[3]]

    storage = utils.SmemAllocator().allocate(Storage)
    sA = storage.a.get_tensor(layout_a.outer, swizzle=layout_a.inner)
    sB = storage.b.get_tensor(layout_b.outer, swizzle=layout_b.inner)
    sC = storage.c.get_tensor(layout_c.outer, swizzle=layout_c.inner)
    full, empty = storage.full.data_ptr(), storage.empty.data_ptr()

    if tidx == 0:
        for i in cutlass.range_constexpr(ab_stage):
            cute.arch.mbarrier_init(full + i, 1)
            cute.arch.mbarrier_init(empty + i, cluster_size * team_groups)
        for i in cutlass.range_constexpr(places[3]):
            cute.arch.mbarrier_init(storage.arrived.data_ptr() + i, 1)
        cute.arch.mbarrier_init_fence()
    if cutlass.const_expr(cluster_size > 1):
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
    else:
        cute.arch.sync_threads()

    gAs = [cute.local_tile(mA, (tile_m, tile_k), (None, None, None)) for mA in mAs]
    gBs = [cute.local_tile(mB, (tile_n, tile_k), (None, None, None)) for mB in mBs]
    along_m, share_a, shares_a = cute.make_layout(cluster_m), rank_n, cute.make_layout(cluster_n)
    if cutlass.const_expr(in_turn):
        share_a, shares_a = 0, cute.make_layout(1)
    tAs = [
        cpasync.tma_partition(tma, share_a, shares_a, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
        for tma, gA in zip(tmas_a, gAs)
    ]
    tBs = [
        cpasync.tma_partition(tma, rank_m, along_m, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2))
        for tma, gB in zip(tmas_b, gBs)
    ]
    k_tiles = cute.ceil_div(cute.ceil_div(k, tile_k), split_k)  # per part of k; TMA fills with zeros past the end

    epi_m, epi_n = tile_m // epi_tile[0], tile_n // epi_tile[1]
    room = storage.a if tile_m * num_a >= tile_n * num_b else storage.b
    sEs, tEs = [None for _ in extras], [None for _ in extras]
    for o in cutlass.range_constexpr(len(extras)):
        if cutlass.const_expr(tmas_e[o] is not None):
            layout_e = layouts_e[o]
            sEs[o] = room.get_tensor(layout_e.outer, swizzle=layout_e.inner, dtype=extras[o].element_type)
            gE = cute.local_tile(mEs[o], epi_tile, (None, None, None))
            tEs[o] = cpasync.tma_partition(
                tmas_e[o], 0, cute.make_layout(1), cute.group_modes(sEs[o], 0, 2), cute.group_modes(gE, 0, 2)
            )

    across_mn = (cute.ceil_div(m, tile_m * cluster_m), cute.ceil_div(n, tile_n * cluster_n))  # in clusters of tiles
    tiles = across_mn[0] * across_mn[1] * batches * split_k
    first, step = cute.arch.block_idx()[0] // cluster_size, cute.arch.grid_dim()[0] // cluster_size

    if warpgroup_idx == consumers:
        if cutlass.const_expr(consumers > 1):
            cute.arch.setmaxregister_decrease(40)
        if warp_idx == consumers * 4:
            # Multicast A to the blocks in this row of the cluster, B to the blocks in this column.
            every = (1 << cluster_size) - 1
            mask_a = cutlass.Int16(every // ((1 << cluster_m) - 1)) << rank_m
            mask_b = cutlass.Int16((1 << cluster_m) - 1) << (rank_n * cluster_m)
            stage_bytes = (num_a * tile_m + num_b * tile_n) * tile_k * a_dtype.width // 8
            stage, phase = cutlass.Int32(0), cutlass.Int32(1)  # phase 1: every stage begins empty
            for tile in cutlass.range(first, tiles, step, unroll=1):
                i, j, batch = tile_at(tile, across_mn, group, along_n)
                i, j = i * cluster_m + rank_m, j * cluster_n + rank_n
                k_first = batch // batches * k_tiles if cutlass.const_expr(split_k > 1) else 0
                batch = batch % batches if cutlass.const_expr(split_k > 1) else batch
                for k_tile in cutlass.range(k_tiles, unroll=1):
                    cute.arch.mbarrier_wait(empty + stage, phase)
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(full + stage, stage_bytes)
                    for o in cutlass.range_constexpr(num_a):
                        at = batch if cutlass.const_expr(cute.size(gAs[o], mode=[4]) > 1) else 0
                        at, slot = (i, k_first + k_tile, at), (stage * num_a + o,)
                        if cutlass.const_expr(in_turn):
                            if (k_first + k_tile) % cluster_n == rank_n:
                                load(tmas_a[o], tAs[o], at, slot, full + stage, mask_a if cluster_n > 1 else None)
                        else:
                            load(tmas_a[o], tAs[o], at, slot, full + stage, mask_a if cluster_n > 1 else None)
                    for o in cutlass.range_constexpr(num_b):
                        at = batch if cutlass.const_expr(cute.size(gBs[o], mode=[4]) > 1) else 0
                        at, slot = (j, k_first + k_tile, at), (stage * num_b + o,)
                        load(tmas_b[o], tBs[o], at, slot, full + stage, mask_b if cluster_m > 1 else None)
                    stage, phase = next_stage(stage, phase, ab_stage)
                for s in cutlass.range_constexpr(len(aux)):
                    step_bytes, pieces_here = aux[s]
                    cute.arch.mbarrier_wait(empty + stage, phase)
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(full + stage, step_bytes)
                    for slot in cutlass.range_constexpr(len(pieces_here)):
                        epi_i, epi_j, o = pieces_here[slot]
                        at = batch if cutlass.const_expr(cute.size(mEs[o], mode=[2]) > 1) else 0
                        at = i * epi_m + epi_i, j * epi_n + epi_j, at
                        load(tmas_e[o], tEs[o], at, (slot, stage), full + stage)
                    stage, phase = next_stage(stage, phase, ab_stage)
    else:
        if cutlass.const_expr(consumers > 1):
            cute.arch.setmaxregister_increase(232)
        team = warpgroup_idx // team_groups
        thread = tidx % team_threads
        thr_mma = mma.get_slice(thread)
        tCrA = mma.make_fragment_A(thr_mma.partition_A(sA))
        wide = storage.b.get_tensor(layout_wide.outer, swizzle=layout_wide.inner)
        tCrB = mma.make_fragment_B(thr_mma.partition_B(wide))
        accs, totals = (
            [cute.make_rmem_tensor(mma.partition_shape_C((tile_m, tile_n * fused_b)), Float32) for _ in range(count)]
            for count in (sums, promoted)
        )
        k_blocks = cute.size(tCrA, mode=[2])

        # The epilogue takes the accumulators in pieces of epi_tile, each as if a narrower wgmma had computed it.
        piece = epi_mma.partition_shape_C(epi_tile)
        pieces = [
            cute.make_tensor(acc.iterator, cute.make_layout((cute.size(piece), epi_n, fused_b, epi_m)))
            for acc in (*totals, *(accs[p] for p in range(promoted, sums)))
        ]
        cC = epi_mma.get_slice(thread).partition_C(cute.make_identity_tensor(epi_tile))
        if cutlass.const_expr(c_dtype.width == 16):
            to_shared = cute.make_tiled_copy_C(cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), c_dtype), epi_mma)
        else:
            to_shared = cute.make_tiled_copy_C(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), c_dtype), epi_mma)
        thr_to_shared, bSsC, bSgC = to_shared.get_slice(thread), None, None
        if cutlass.const_expr(tma_c is not None):
            gC = cute.local_tile(tC, epi_tile, (None, None, None))
            bSsC, bSgC = cpasync.tma_partition(
                tma_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), cute.group_modes(gC, 0, 2)
            )
        output = mC, thr_to_shared, thr_to_shared.partition_D(sC), tma_c, bSsC, bSgC
        shared_rows = None
        if cutlass.const_expr(in_turn):
            sParts = storage.exchanged.get_tensor(cute.make_layout(places))
            shared_rows = mParts, sParts, storage.arrived.data_ptr(), warp_idx, rank_m, rank_n

        from_shared = [
            cute.make_tiled_copy_C(
                cute.make_copy_atom(
                    warp.LdMatrix8x8x16bOp(False, 4) if x.element_type.width == 16 else cute.nvgpu.CopyUniversalOp(),
                    x.element_type,
                ),
                epi_mma,
            )
            for x in extras
        ]

        inputs, pipeline = (fp32_operands, extras, sEs, from_shared, sizes, aux), (full, empty, ab_stage, cluster_size)
        stored = cutlass.Int32(0)  # pieces this team has stored
        steps = k_tiles + (len(aux) if in_turn else 0)  # stages per tile, if teams take turns
        stage, phase = stage_after(cutlass.Int32(0), cutlass.Int32(0), team * steps, ab_stage)
        for tile in cutlass.range(first + team * step, tiles, step * teams, unroll=1):
            # Mainloops of the teams take turns: an mbarrier's phase is ambiguous to a waiter more than one round ahead.
            if cutlass.const_expr(teams > 1):
                if tile > first:
                    cute.arch.barrier(barrier_id=3 + team, number_of_threads=consumers * 128)
            before = stage
            for p in cutlass.range_constexpr(promoted):
                totals[p].fill(0.0)
            for k_tile in cutlass.range(k_tiles, unroll=1):
                cute.arch.mbarrier_wait(full + stage, phase)
                warpgroup.fence()
                for t in cutlass.range_constexpr(len(terms)):
                    for k_block in cutlass.range_constexpr(k_blocks):
                        if cutlass.const_expr(k_block > 0 or not opens(terms, t)):
                            mma.set(warpgroup.Field.ACCUMULATE, True)
                        elif cutlass.const_expr(t < promoted):
                            mma.set(warpgroup.Field.ACCUMULATE, False)
                        else:
                            mma.set(warpgroup.Field.ACCUMULATE, k_tile > 0)
                        rA = tCrA[None, None, k_block, stage * num_a + terms[t][0]]
                        rB = tCrB[None, None, k_block, stage * (num_b // fused_b) + terms[t][1]]
                        cute.gemm(mma, accs[terms[t][2]], rA, rB, accs[terms[t][2]])
                    if cutlass.const_expr(t + 1 == promoted):
                        warpgroup.commit_group()
                warpgroup.commit_group()
                warpgroup.wait_group(1)  # the previous step has read its stage; the sums to promote are complete
                for p in cutlass.range_constexpr(promoted):
                    totals[p].store(totals[p].load() + accs[p].load())
                if k_tile > 0 and tidx % 128 < cluster_size:  # one arrival for each block that fills the stage
                    cute.arch.mbarrier_arrive(empty + before, tidx % 128)
                before = stage
                stage, phase = next_stage(stage, phase, ab_stage)
            if cutlass.const_expr(teams > 1):
                if tile + step < tiles:
                    cute.arch.barrier_arrive(barrier_id=4 - team, number_of_threads=consumers * 128)
            warpgroup.wait_group(0)
            if tidx % 128 < cluster_size:
                cute.arch.mbarrier_arrive(empty + before, tidx % 128)
            if cutlass.const_expr(teams > 1 and not in_turn):  # skip the stages that the other team's tile uses
                stage, phase = stage_after(stage, phase, cutlass.Int32(k_tiles), ab_stage)

            i, j, batch = tile_at(tile, across_mn, group, along_n)
            row, column = (i * cluster_m + rank_m) * tile_m, (j * cluster_n + rank_n) * tile_n
            at, state, turn = (row, column, batch), (stored, stage, phase), (tile - first) // (step * teams)
            stored, stage, phase = tile_epilogue(
                pieces, at, state, turn, inputs, output, cC, shared_rows, pipeline, (team, thread), tiling, summed
            )
        if cutlass.const_expr(tma_c is not None):
            if thread < 32:
                cute.arch.cp_async_bulk_wait_group(0, read=True)
    if cutlass.const_expr(cluster_size > 1):
        cute.arch.cluster_arrive()  # no block exits while others may still signal its barriers or fill its stages
        cute.arch.cluster_wait()


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
    """The epilogue of a tile: computes and stores its results piece by piece. ``pieces``: its totals and sums, each
    (values, epi_n, fused_b, epi_m). ``at``: (row, column, batch). ``state``: (pieces stored, stage and phase of the
    pipeline); the new state is returned. ``turn``: number of earlier tiles of the team. ``place``: (team, thread of
    the team)."""
    (row, column, batch), (stored, stage, phase) = at, state
    fp32_operands, extras, sEs, from_shared, sizes, aux = inputs
    full, empty, ab_stage, cluster_size = pipeline
    ((m, n, k, batches), (_, _, tile_k), epi_tile, _, _), (_, promoted, fused_b, split_k) = tiling, summed
    k_part = cute.ceil_div(cute.ceil_div(k, tile_k), split_k) * tile_k
    c_dtype = output[0].element_type
    _, epi_n, _, epi_m = pieces[0].shape
    for epi_i in cutlass.range_constexpr(epi_m):
        for epi_j in cutlass.range_constexpr(epi_n):
            epi_row, epi_column = row + epi_i * epi_tile[0], column + epi_j * epi_tile[1]
            values = [of[None, epi_j, beside, epi_i].load() for of in pieces for beside in range(fused_b)]
            if cutlass.const_expr(len(fp32_operands) > 0):
                first, last, of = batch // batches * k_part, (batch // batches + 1) * k_part, batch % batches
                piece_at, span = (epi_row, epi_column, of), (first, cutlass.min(last, k))
                values = [
                    restore(values[p], values[promoted + p], fp32_operands[p], cC, *piece_at, *span, (m, n))
                    for p in range(promoted)
                ]
            loaded, drained = [], []
            for o in cutlass.range_constexpr(len(extras) if split_k == 1 else 0):
                if cutlass.const_expr(sEs[o] is None):
                    loaded.append(fetch(extras[o], cC, epi_row, epi_column, batch, (m, n), True))
                else:
                    slot, last = place_of((epi_i, epi_j, o), aux)
                    if cutlass.const_expr(slot == 0):
                        cute.arch.mbarrier_wait(full + stage, phase)
                    rE = read_aux(sEs[o], from_shared[o], place[1], slot, stage, cC)
                    loaded.append(rE.load().to(Float32))
                    if cutlass.const_expr(slot == last):
                        drained.append(stage)
                        stage, phase = next_stage(stage, phase, ab_stage)
            if cutlass.const_expr(split_k > 1):
                result = values[0]
            else:
                result = epilogue(*values, *loaded, *sizes)
            rC = cute.make_rmem_tensor(cute.size(cC), c_dtype)
            rC.store(result.to(c_dtype))
            piece_at, left = (epi_row, epi_column, batch), (drained, empty, cluster_size)
            stored = store_piece(rC, output, cC, piece_at, (m, n), epi_tile, stored, place, left)
    return stored, stage, phase


@cute.jit
def store_piece(
    rC: cute.Tensor,
    output: tuple,
    cC: cute.Tensor,
    at: tuple,
    shape_mn: cutlass.Constexpr,
    epi_tile: cutlass.Constexpr,
    stored: cutlass.Int32,
    place: tuple,
    left: tuple,
):
    """Stores a piece of results from registers, by TMA if possible. ``left``: stages to release after the team's
    barrier (stages, the pipeline's empty barriers, number of blocks that fill a stage). Returns how many pieces the
    team has ``stored``."""
    mC, thr_to_shared, tCsC, tma_c, bSsC, bSgC = output
    drained, empty, cluster_size = left
    (row, column, batch), (team, thread) = at, place
    if cutlass.const_expr(tma_c is not None):
        team_threads, tidx = epi_tile[0] * 2, cute.arch.thread_idx()[0]
        slot = team * EPI_STAGE + stored % EPI_STAGE
        if thread < 32:
            cute.arch.cp_async_bulk_wait_group(EPI_STAGE - 1, read=True)  # TMA has read the slot
        cute.arch.barrier(barrier_id=1 + team, number_of_threads=team_threads)
        for d in cutlass.range_constexpr(len(drained)):
            if tidx % 128 < cluster_size:
                cute.arch.mbarrier_arrive(empty + drained[d], tidx % 128)
        tCrC = thr_to_shared.retile(cute.make_tensor(rC.iterator, cute.make_layout(cC.shape)))
        cute.copy(thr_to_shared, tCrC, tCsC[None, None, None, slot])
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(barrier_id=1 + team, number_of_threads=team_threads)
        if thread < 32:
            if row < shape_mn[0] and column < shape_mn[1]:  # if C is one tile high, tiles past the edge would alias it
                dst = (row // epi_tile[0], column // epi_tile[1], batch)
                cute.copy(tma_c, bSsC[None, slot], bSgC[(None, *dst)])
            cute.arch.cp_async_bulk_commit_group()
        stored = stored + 1
    else:
        put(rC, mC, cC, row, column, batch, shape_mn)
    return stored


def opens(terms, number):
    """Whether term ``number`` is the first one that adds to its sum in a step along k."""
    return [term[2] for term in terms].index(terms[number][2]) == number


def epilogue(acc1, acc2):
    """((x @ g.mT) · sigmoid(x @ g.mT)) · (x @ u.mT), on fp32 vectors."""
    return acc1 * fast_sigmoid(acc1) * acc2


@cute.jit
def launch(
    x: cute.Tensor,
    g: cute.Tensor,
    u: cute.Tensor,
    out: cute.Tensor,
    partials: cute.Tensor,
    stream: cuda.CUstream,
    tile_m: cutlass.Constexpr = 256,
    tile_n: cutlass.Constexpr = 64,
    tile_k: cutlass.Constexpr = 64,
    stages: cutlass.Constexpr = 8,
    cluster_m: cutlass.Constexpr = 1,
    cluster_n: cutlass.Constexpr = 1,
    schedule: cutlass.Constexpr = 'cooperative',
    raster: cutlass.Constexpr = 'm',
    group: cutlass.Constexpr = 8,
    split_k: cutlass.Constexpr = 1,
):
    m = x.shape[0]
    n = g.shape[0]
    batches = 1
    mA = view(x.iterator, (m, x.shape[1], batches), (x.stride[0], x.stride[1], 0))
    mB = view(g.iterator, (n, g.shape[1], batches), (g.stride[0], g.stride[1], 0))
    mB1 = view(u.iterator, (n, u.shape[1], batches), (u.stride[0], u.stride[1], 0))
    mC = view(out.iterator, (m, n, batches), (out.stride[0], out.stride[1], 0))
    mAs, mBs = (mA,), (mB, mB1)
    extras, sizes = (), ()
    pairs, fp32_operands = ((0, 0), (0, 1)), ()
    by_tma = mAs, mBs
    multiply(mAs, mBs, by_tma, fp32_operands, mC, partials, extras, stream, sizes, pairs, split_k,
             (tile_m, tile_n, tile_k), (cluster_m, cluster_n), stages, schedule, raster, group)

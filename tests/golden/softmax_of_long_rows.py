"""tested: row reduction.

out = exp((x - max(x))) · recip(sum(exp((x - max(x)))))

A row stays in registers between its reductions: it is read once and written once. Each thread issues up to
``loads`` vector loads before it uses the first. If these do not cover its share, it reads the row in steps,
and again for every reduction that cannot share a pass.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass import Float32

TUNABLE = {
    "vec": (1, 2, 4, 8, 16),
    "threads_per_row": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
    "rows_per_block": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "cluster_n": (1, 2, 4, 8),
    "loads": (1, 2, 4, 8, 16, 32, 64),
}


def constraints(config, workload, device):
    n = workload.inputs[0].shape[1]
    return not why_not(config, n, n, True, workload.derived)


def plus(a, b):
    return a + b


def larger(a, b):
    return cute.arch.fmax(a, b, nan=True)


OVERLAP = False  # whether all kernels of this module start early; set by modules with several kernels


def overlapping():
    """Whether a kernel can start before the previous one has ended: from sm_90 on."""
    return cutlass.cutlass_dsl.BaseDSL._get_dsl().get_arch_enum() >= cutlass.Arch.sm_90


def start_next_and_wait():
    """Lets the next kernel start, then waits until the previous kernel's writes are visible."""
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()


@cute.jit
def row_reduce(
    value: Float32,
    buffer: cute.Tensor,
    op: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
):
    """Reduces one value per thread over the threads of a row. Every thread of the row gets the result.

    A warp reduces by shuffles. The warps of a row exchange their results through ``buffer`` (rows per block, warps per
    row): every thread reads all results of its row, which is faster than a second round of shuffles.
    """
    result = cute.arch.warp_reduction(value, op, threads_in_group=min(threads_per_row, 32))
    if cutlass.const_expr(threads_per_row > 32):
        tidx, _, _ = cute.arch.thread_idx()
        local_row = tidx // threads_per_row
        if tidx % 32 == 0:
            buffer[local_row, tidx % threads_per_row // 32] = result
        cute.arch.sync_threads()
        result = pairwise(values_of(buffer[local_row, None]), op)
    return result


def values_of(sX):
    rX = cute.make_fragment_like(sX)
    cute.autovec_copy(sX, rX)
    return [rX[i] for i in range(cute.size(rX))]


def pairwise(parts, combine):
    while len(parts) > 1:
        odd = parts[len(parts) // 2 * 2 :]
        parts = [combine(a, b) for a, b in zip(parts[::2], parts[1::2])] + odd
    return parts[0]


EVICT_LAST = 0x14F0000000000000  # the policy of createpolicy.fractional.L2::evict_last with fraction 1


def load_lasting(gX, rX):
    """Loads a vector that L2 keeps longer than data that is written (PTX ISA 9.7.9.8, .L2::cache_hint)."""
    width = rX.element_type.width
    bits = math.gcd(cute.size(rX) * width, 128)
    if bits < 32 or gX.stride != (1,) or gX.iterator.max_alignment * 8 % bits:
        cute.autovec_copy(gX, rX)
        return
    load = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), gX.element_type, num_bits_per_copy=bits)
    parts = (bits // width,)
    cute.copy(load, cute.flat_divide(gX, parts), cute.flat_divide(rX, parts), cache_policy=cutlass.Int64(EVICT_LAST))


FAST = False  # whether to use the hardware's exponential


@cute.jit
def finite(top: Float32):
    """The number subtracted from exponents: the maximum, or 0 if it is -inf (then all values so far are -inf)."""
    return top if top > -Float32.inf else Float32(0.0)


SHIFT = finite  # maps the maximum to the number subtracted from exponents


@cute.jit
def rescale(before: Float32, after: Float32):
    """Factor by which a sum of exponentials is rescaled from the maximum ``before`` to ``after``."""
    return Float32(1.0) if before == after else cute.math.exp(before - after, fastmath=FAST)


def positions(start, stride, shape):
    """Index along the row of each of a thread's values, in fp32."""
    rColumn = cute.make_rmem_tensor(shape, Float32)
    vec, loads = shape
    for i in range(loads):
        for j in range(vec):
            rColumn[j, i] = Float32((start + i * stride) * vec + j)
    return rColumn.load()


def view(pointer, shape, stride):
    """The memory at ``pointer`` as a tensor with this shape, and strides in elements."""
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))


MAX_VALUES = 96  # values of a row per thread, in registers


MAX_LOADS = 64  # vector loads of a row in flight per thread; this value means: the thread's whole share


MAX_ROW = 1 << 24  # up to this length, indices along a row are exact in fp32


SHORT = 64  # rows up to this length may have fewer threads than FEWEST


FEWEST = 8


def width_of(vec, n, run, skewed):
    """Vector width, at most ``vec``. ``run``: number of adjacent values of a row (of ``n``) with one stride.
    ``skewed``: rows may begin and end inside a vector."""
    return vec if skewed and n % vec else math.gcd(run, vec)


def share_of(config, n, run, skewed):
    """Vectors of a row per thread."""
    width = width_of(config["vec"], n, run, skewed)
    return -(-n // (width * config["threads_per_row"] * config["cluster_n"]))


def why_not(config, n, run, skewed, twice):
    """The limit that ``config`` exceeds, or "". ``twice``: accept ``loads`` that mean the same as ``MAX_LOADS``."""
    per_row, loads, vec = config["threads_per_row"], config["loads"], width_of(config["vec"], n, run, skewed)
    threads, share = per_row * config["rows_per_block"], share_of(config, n, run, skewed)
    if n > MAX_ROW:
        return f"a row of {n:,} values (at most {MAX_ROW:,})"
    if threads % 32 or threads > 1024:
        return f"{threads:,} threads in a block (must be a multiple of 32, at most 1,024)"
    if config["cluster_n"] > per_row:
        return f"a cluster of {config['cluster_n']} blocks (at most threads_per_row: {per_row})"
    if per_row < FEWEST and n > SHORT:
        return f"{per_row} threads per row (at least {FEWEST} for rows longer than {SHORT})"
    if loads >= share and loads != MAX_LOADS and not twice:
        return f"{loads} loads in flight cover a thread's whole share of a row, {share}; use {MAX_LOADS} for that"
    values = vec * min(share, loads)
    return f"{values} values of a row in a thread's registers (at most {MAX_VALUES})" if values > MAX_VALUES else ""


@cute.jit
def exchange(
    rValue: cute.Tensor,
    parts: cute.Tensor,
    arrived: cute.Pointer,
    phase: cutlass.Int32,
    rank: cutlass.Int32,
    threads_per_row: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
):
    """Sends a row's values from each block of a cluster to all, through distributed shared memory, and waits until all
    of ``parts`` (blocks, values, rows per block) has arrived. Returns (blocks, values) of the thread's row."""
    tidx, _, _ = cute.arch.thread_idx()
    lane = tidx % threads_per_row
    local_row = tidx // threads_per_row
    bits = cute.recast_tensor(rValue, cutlass.Int32)  # st.async stores 32-bit integers
    if tidx == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, cute.size(parts) * 4)
    if lane < cluster_n:
        for i in cutlass.range_constexpr(cute.size(bits)):
            dst = cute.domain_offset((rank, i, local_row), parts).iterator
            cute.arch.store_async_dsmem(dst, bits[i], arrived, lane)
    cute.arch.mbarrier_wait(arrived, phase)
    return parts[None, None, local_row]


@cute.jit
def cluster_reduce(
    value: Float32,
    parts: cute.Tensor,
    arrived: cute.Pointer,
    phase: cutlass.Int32,
    rank: cutlass.Int32,
    op: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
):
    """Reduces one value per row over the blocks of a cluster."""
    rValue = cute.make_rmem_tensor(cute.make_layout(1), Float32)
    rValue[0] = value
    sent = exchange(rValue, parts, arrived, phase, rank, threads_per_row, cluster_n)
    return pairwise(values_of(sent[None, 0]), op)


def together(counts, totals, squares):
    """Combines parts of a row: their counts, sums, and sums of squared deviations, each from the part's own mean.

    Chan, Golub & LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979.
    """
    count, total = pairwise(counts, plus), pairwise(totals, plus)
    mean = centre_of(count, total)
    return count, total, pairwise([s + apart(c, t, mean) for c, t, s in zip(counts, totals, squares)], plus)


def apart(count, total, mean):
    """Increase of a part's squared deviations if they are from ``mean`` instead of the part's own mean."""
    distance = total - count * mean
    return distance * distance * cute.arch.rcp_approx(cute.arch.fmax(count, 1.0))


def centre_of(count, total):
    """The mean, divided exactly: the mean of equal values is this value, and their squared deviations are 0."""
    return total / cute.arch.fmax(count, 1.0)


def lanes_together(count, total, squares, even, lanes):
    """``together`` over neighbouring lanes. ``even``: all lanes have the same count."""
    seen = count * lanes if even else cute.arch.warp_reduction(count, plus, threads_in_group=lanes)
    whole = cute.arch.warp_reduction(total, plus, threads_in_group=lanes)
    own = squares + apart(count, total, centre_of(seen, whole))
    return seen, whole, cute.arch.warp_reduction(own, plus, threads_in_group=lanes)


@cute.jit
def row_moments(
    count: Float32,
    total: Float32,
    squares: Float32,
    buffer: cute.Tensor,
    even: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
):
    """``together`` over the threads of a row, through ``buffer`` (rows per block, warps per row, 3)."""
    seen, whole, rest = lanes_together(count, total, squares, even, min(threads_per_row, 32))
    if cutlass.const_expr(threads_per_row > 32):
        tidx, _, _ = cute.arch.thread_idx()
        warps = threads_per_row // 32
        parts = buffer[tidx // threads_per_row, None, None]
        if tidx % 32 == 0:
            warp = tidx % threads_per_row // 32
            parts[warp, 0] = seen
            parts[warp, 1] = whole
            parts[warp, 2] = rest
        cute.arch.sync_threads()
        part = tidx % warps
        if cutlass.const_expr(not even):
            seen = parts[part, 0]
        seen, whole, rest = lanes_together(seen, parts[part, 1], parts[part, 2], even, warps)
    return seen, whole, rest


@cute.jit
def cluster_moments(
    count: Float32,
    total: Float32,
    squares: Float32,
    parts: cute.Tensor,
    arrived: cute.Pointer,
    phase: cutlass.Int32,
    rank: cutlass.Int32,
    even: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
):
    """``together`` over the blocks of a cluster."""
    rValue = cute.make_rmem_tensor(cute.make_layout(3), Float32)
    rValue[0] = count
    rValue[1] = total
    rValue[2] = squares
    sent = exchange(rValue, parts, arrived, phase, rank, threads_per_row, cluster_n)
    counts = [count] * cluster_n
    if cutlass.const_expr(not even):
        counts = values_of(sent[None, 0])
    return together(counts, values_of(sent[None, 1]), values_of(sent[None, 2]))


def stageable(tensors, slots):
    """Whether cp.async can copy vectors of ``tensors``, and ``slots`` vectors of each fit shared memory."""
    sizes = [cute.size(gX, mode=[0]) * gX.element_type.width // 8 for gX in tensors]
    return all(size in (4, 8, 16) for size in sizes) and sum(sizes) * slots <= 72 << 10


@cute.jit
def stage(
    gX: cute.Tensor,
    sX: cute.Tensor,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
):
    """Starts cp.async copies of a thread's vectors (see ``fetch``) to the thread's own slots. Needs no registers."""
    copy = cute.nvgpu.cpasync.CopyG2SOp(cache_mode=cute.nvgpu.cpasync.LoadCacheMode.ALWAYS)
    bits = cute.size(gX, mode=[0]) * gX.element_type.width
    atom = cute.make_copy_atom(copy, gX.element_type, num_bits_per_copy=bits)
    for i in cutlass.range_constexpr(cute.size(sX, mode=[1])):
        column = start + i * stride
        if i < unpredicated or column < cute.size(gX, mode=[1]):
            cute.copy(atom, gX[None, column, 0], sX[None, i])
    cute.arch.cp_async_commit_group()


@cute.jit
def unstage(
    sX: cute.Tensor,
    rX: cute.Tensor,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    vectors: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
):
    """Loads to registers what ``stage`` has copied."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        if i < unpredicated or start + i * stride < vectors:
            cute.autovec_copy(sX[None, i], rX[None, i])


ROOM = 64  # register values per thread beyond which fewer threads would fit an SM


def reduce_rows(inputs, outputs, tails, reductions, functions, problem, config, stream):
    """Launches a block, or a cluster, per ``rows_per_block`` rows. With several tensors that all rows share, a cluster
    takes several groups of rows in turn: loading these tensors again for each row would cost more than the row."""
    threads_per_row, rows_per_block, cluster_n, loads = config
    rows, _, _, _ = problem
    _, gShared, _ = inputs
    groups = (rows + rows_per_block - 1) // rows_per_block
    turns = min(max(groups // 512, 1), 8) if len(gShared) > 1 and cluster_n > 1 else 1
    row_kernel(
        inputs, outputs, tails, reductions, functions, problem,
        (threads_per_row, rows_per_block, cluster_n, loads, turns),
    ).launch(
        grid=[(groups + turns - 1) // turns * cluster_n, 1, 1],
        block=[threads_per_row * rows_per_block, 1, 1],
        cluster=[cluster_n, 1, 1] if cluster_n > 1 else None,
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


@cute.kernel
def row_kernel(
    inputs: tuple,
    outputs: tuple,
    tails: tuple,
    reductions: cutlass.Constexpr,
    functions: cutlass.Constexpr,
    problem: cutlass.Constexpr,
    config: cutlass.Constexpr,
):
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    gXs, gShared, gSingles = inputs
    gOuts, gResults, gTotals = outputs
    ops, walks, online, moments, rest = reductions
    per_row, outs, results, skewed_at = functions
    rows, n, vec, sizes = problem
    threads_per_row, rows_per_block, cluster_n, loads, turns = config
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    if cutlass.const_expr(len(gTotals) > 0 and not OVERLAP and overlapping()):
        cute.arch.griddepcontrol_launch_dependents()
    stride = threads_per_row * cluster_n  # vectors of a row that are loaded at the same time
    num_vecs, vecs_per_step, steps, unpredicated = share_of_row(n, vec, stride, loads)
    shape = (vec, vecs_per_step)  # (values of a vector, vectors) per thread and step
    rank = 0  # rank of this block among those that share its rows
    if cutlass.const_expr(cluster_n > 1):
        rank = cute.arch.block_idx_in_cluster()
    first_vec = rank * threads_per_row + tidx % threads_per_row
    share = first_vec, shape, stride, steps, unpredicated

    smem = cutlass.utils.SmemAllocator()
    warps = max(threads_per_row // 32, 1)
    partials = cute.make_layout((rows_per_block, warps), stride=(warps, 1))
    sPartials = [smem.allocate_tensor(Float32, partials, 16) for _ in ops]
    sMoments = None
    if cutlass.const_expr(moments is not None):
        three = cute.make_layout((rows_per_block, warps, 3), stride=(3 * warps, 1, warps))
        sMoments = smem.allocate_tensor(Float32, three, 16)
    sExchanges, arrived = None, None
    if cutlass.const_expr(cluster_n > 1):
        # Each block sends one value per reduction, but three for the two moments, which come last.
        sent = [1 for _ in ops] if moments is None else [1] * (len(ops) - 2) + [3]
        sExchanges, arrived = allocate_exchanges(smem, sent, config)
    buffers = sPartials, sExchanges, arrived

    rXs = [cute.make_rmem_tensor(shape, gX.element_type) for gX in gXs]
    rShared = [cute.make_rmem_tensor(shape, gX.element_type) for gX in gShared]
    if cutlass.const_expr(unpredicated < vecs_per_step):
        for rX in rXs:
            rX.fill(0.0)
        for rEach in rShared:
            rEach.fill(0.0)
    sShared, kept_in, ahead = [], "memory", False
    if cutlass.const_expr(len(gShared) > 0):
        sShared, kept_in = ask_for_shared(smem, gShared, rShared, share, threads_per_row * rows_per_block)
        # Prefetch the next row during this one. Registers have room, since the shared tensors are in shared memory.
        ahead = kept_in == "shared memory" and turns > 1
        if cutlass.const_expr(ahead):
            rNexts = [cute.make_rmem_tensor(shape, gX.element_type) for gX in gXs]
            next_row = cutlass.min(bidx // cluster_n * turns * rows_per_block + tidx // threads_per_row, rows - 1)
            for gX, rNext in zip(gXs, rNexts):
                if cutlass.const_expr(unpredicated < vecs_per_step):
                    rNext.fill(0.0)
                fetch(gX, rNext, next_row, first_vec, stride, unpredicated)
    shared = gShared, rShared, sShared, kept_in

    for turn in cutlass.range(turns, unroll=1):
        row = (bidx // cluster_n * turns + turn) * rows_per_block + tidx // threads_per_row
        # Threads past the last row recompute it and store nothing, so that all threads reach each barrier.
        source_row = cutlass.min(row, rows - 1)
        source, target, bounds = source_row, row, num_vecs
        if cutlass.const_expr(skewed_at is not None):
            source, target, bounds = skewed_at(source_row, n, vec, *tails)
        sources = gXs, rXs, source, bounds
        if cutlass.const_expr(ahead):
            for rX, rNext in zip(rXs, rNexts):
                rX.store(rNext.load())
            if turn + 1 < turns:
                next_row = cutlass.min(row + rows_per_block, rows - 1)
                for gX, rNext in zip(gXs, rNexts):
                    fetch(gX, rNext, next_row, first_vec, stride, unpredicated)
        elif cutlass.const_expr(steps == 1):
            for gX, rX in zip(gXs, rXs):
                fetch(gX, rX, source, first_vec, stride, unpredicated)
        values = [None for _ in ops]
        if cutlass.const_expr(len(sizes) > 0):
            values += sizes
        if cutlass.const_expr(per_row is not None):
            values += per_row(source_row, *gSingles, *sizes)

        left = walks
        if cutlass.const_expr(online is not None and steps > 1):
            *function, (i, j) = online
            top, total = online_walk(sources, share, function, values)
            values[i] = reduce_row(top, i, ops, buffers, turn, rank, config)
            total = total * rescale(top, values[i])
            values[j] = reduce_row(total, j, ops, buffers, turn, rank, config)
            left = rest
        if cutlass.const_expr(moments is not None and (steps > 1 or cluster_n > 1)):
            *function, (i, j) = moments
            parts = moments_walk(sources, share, function, values)
            even = unpredicated == vecs_per_step
            parts = row_moments(*parts, sMoments, even, threads_per_row)
            if cutlass.const_expr(cluster_n > 1):
                place = exchange_at(sExchanges, arrived, i, turn, turns)
                parts = cluster_moments(*parts, *place, rank, even, threads_per_row, cluster_n)
            _, values[i], values[j] = parts
            left = rest
        for *function, numbers in left:
            parts = row_walk(sources, share, function, values, [ops[i] for i in numbers])
            for i, part in zip(numbers, parts):
                values[i] = reduce_row(part, i, ops, buffers, turn, rank, config)

        if cutlass.const_expr(outs is not None):
            store_row(sources, share, shared, (gOuts, target, row, rows), outs, values)
        if cutlass.const_expr(results is not None):
            function, taken, before = results
            given = taken_values(values, taken, before)
            if row < rows and first_vec == 0:
                found = function(*given)
                for gResult, value in zip(gResults, found):
                    gResult[row] = gResult.element_type(value)
                for gTotal in gTotals:
                    for i in cutlass.range_constexpr(len(found) - len(gResults)):
                        gTotal[i, row] = Float32(found[len(gResults) + i])
        if cutlass.const_expr(turns > 1):
            cute.arch.sync_threads()  # the next turn writes the buffers again


@cute.jit
def allocate_exchanges(smem, sent, config):
    """Allocates shared memory in which the blocks of a cluster exchange ``sent`` values per reduction, with an mbarrier
    each. Both are doubled if rows are taken in turns, since a block may be one turn ahead of another."""
    _, rows_per_block, cluster_n, _, turns = config
    tidx, _, _ = cute.arch.thread_idx()
    stages = min(turns, 2)
    layouts = [cute.make_layout((cluster_n, count, rows_per_block, stages)) for count in sent]
    sExchanges = [smem.allocate_tensor(Float32, layout, 16) for layout in layouts]
    arrived = smem.allocate_array(cutlass.Int64, num_elems=len(sent) * stages)
    if tidx == 0:
        for i in cutlass.range_constexpr(len(sent) * stages):
            cute.arch.mbarrier_init(arrived + i, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive_relaxed()
    cute.arch.cluster_wait()
    return sExchanges, arrived


def ask_for_shared(smem, gShared, rShared, share, threads):
    """Starts to load the tensors that all rows share, before a row is loaded: the compiler would load them piece by
    piece afterwards, one wait after another. They are kept in registers if there is room; otherwise each thread copies
    its own part to shared memory, if it fits. Returns the shared memory, and where the tensors are kept."""
    first_vec, shape, stride, steps, unpredicated = share
    tidx, _, _ = cute.arch.thread_idx()
    vec, vecs_per_step = shape
    sShared, kept_in = [], "memory"
    if steps == 1 and (1 + len(gShared)) * vec * vecs_per_step < ROOM:
        kept_in = "registers"
        for gX, rX in zip(gShared, rShared):
            fetch(gX, rX, 0, first_vec, stride, unpredicated)
    elif steps == 1 and stageable(gShared, vecs_per_step * threads):
        kept_in = "shared memory"
        slots = cute.make_layout((vec, vecs_per_step, threads), stride=(1, vec * threads, vec))
        sShared = [smem.allocate_tensor(gX.element_type, slots, 16)[None, None, tidx] for gX in gShared]
        for gX, sX in zip(gShared, sShared):
            stage(gX, sX, first_vec, stride, unpredicated)
    return sShared, kept_in


def await_shared(shared, start, bounds, share):
    """Copies to registers one step of the tensors that all rows share."""
    gShared, rShared, sShared, kept_in = shared
    _, _, stride, _, unpredicated = share
    if kept_in == "shared memory":
        cute.arch.cp_async_wait_group(0)
        for sX, rX in zip(sShared, rShared):
            unstage(sX, rX, start, stride, bounds, unpredicated)
    if kept_in == "memory":
        for gX, rX in zip(gShared, rShared):
            fetch(gX, rX, 0, start, stride, unpredicated)


def fetch_step(sources, share, start, vectors):
    """Loads a thread's part of one step, of the inputs with indices ``vectors``."""
    gXs, rXs, source, _ = sources
    _, _, stride, _, unpredicated = share
    for i in vectors:
        fetch(gXs[i], rXs[i], source, start, stride, unpredicated)


def loaded(sources, share, start, vectors, indexed):
    """The inputs with indices ``vectors`` of one step in fp32; if ``indexed``, also the indices along the row."""
    _, rXs, _, bounds = sources
    return [rXs[i].load().to(Float32) for i in vectors] + [
        columns_of_step(start, bounds, share) for _ in range(indexed)
    ]


def taken_values(values, taken, before):
    """Those of ``values`` that a function takes, and what is computed from them once per pass."""
    found = [values[i] for i in taken]
    for function, numbers in before:
        found += function(*[values[i] for i in numbers])
    return found


@cute.jit
def row_walk(sources, share, function, values, ops):
    """One pass over a thread's share of a row: reduces the terms that ``function`` computes in each step."""
    _, _, _, bounds = sources
    first_vec, shape, stride, steps, _ = share
    terms, vectors, indexed, taken, before = function
    given = taken_values(values, taken, before)
    parts = [Float32(neutral) for _, neutral in ops]
    for step in cutlass.range(steps, unroll=1):
        start = first_vec + step * (stride * shape[1])
        if cutlass.const_expr(steps > 1):
            fetch_step(sources, share, start, vectors)
        operands = loaded(sources, share, start, vectors, indexed)
        found = terms(*operands, *given)
        parts = [
            op(part, fold(value, op, neutral, start, bounds, share))
            for part, value, (op, neutral) in zip(parts, found, ops)
        ]
    return parts


@cute.jit
def online_walk(sources, share, function, values):
    """A thread's maximum and sum of exponentials relative to it. The sum is rescaled whenever the maximum grows.

    Milakov & Gimelshein, Online normalizer calculation for softmax, 2018, algorithm 3.
    """
    _, _, _, bounds = sources
    first_vec, shape, stride, steps, _ = share
    exponents, vectors, indexed, taken, before = function
    given = taken_values(values, taken, before)
    top = Float32(-Float32.inf)
    total = Float32(0.0)
    for step in cutlass.range(steps, unroll=1):
        start = first_vec + step * (stride * shape[1])
        if cutlass.const_expr(steps > 1):
            fetch_step(sources, share, start, vectors)
        operands = loaded(sources, share, start, vectors, indexed)
        (x,) = exponents(*operands, *given)
        grown = larger(top, fold(x, larger, -Float32.inf, start, bounds, share))
        e = cute.math.exp(x - SHIFT(grown), fastmath=FAST)
        total = total * rescale(top, grown) + fold(e, plus, 0.0, start, bounds, share)
        top = grown
    return top, total


@cute.jit
def moments_walk(sources, share, function, values):
    """Count, sum, and sum of squared deviations from the mean over a thread's share of a row. Each step takes
    deviations from its own mean; the steps are then combined by ``together``."""
    _, _, _, bounds = sources
    first_vec, shape, stride, steps, _ = share
    summands, vectors, indexed, taken, before = function
    given = taken_values(values, taken, before)
    seen = Float32(0.0)
    total = Float32(0.0)
    squares = Float32(0.0)
    for step in cutlass.range(steps, unroll=1):
        start = first_vec + step * (stride * shape[1])
        if cutlass.const_expr(steps > 1):
            fetch_step(sources, share, start, vectors)
        operands = loaded(sources, share, start, vectors, indexed)
        (x,) = summands(*operands, *given)
        count = inside(start, bounds, share)
        part = fold(x, plus, 0.0, start, bounds, share)
        d = x - centre_of(count, part)
        about = fold(d * d, plus, 0.0, start, bounds, share)
        if cutlass.const_expr(steps == 1):
            seen, total, squares = count, part, about
        else:
            seen, total, squares = together([seen, count], [total, part], [squares, about])
    return seen, total, squares


def reduce_row(value, i, ops, buffers, turn, rank, config):
    """Reduction ``i`` of one value per thread over the threads of a row, in all blocks of a cluster."""
    sPartials, sExchanges, arrived = buffers
    threads_per_row, _, cluster_n, _, turns = config
    if cluster_n == 1:
        return row_reduce(value, sPartials[i], ops[i][0], threads_per_row)
    value = row_reduce(value, sPartials[i], ops[i][0], threads_per_row)
    place = exchange_at(sExchanges, arrived, i, turn, turns)
    return cluster_reduce(value, *place, rank, ops[i][0], threads_per_row, cluster_n)


def exchange_at(sExchanges, arrived, i, turn, turns):
    """Where the blocks of a cluster exchange their partial results: buffer, mbarrier and the mbarrier's phase."""
    stages = min(turns, 2)
    stage = turn % stages
    return sExchanges[i][None, None, None, stage], arrived + (stages * i + stage), turn // stages % 2


@cute.jit
def store_row(sources, share, shared, destination, function, values):
    """A last pass over a row, which stores the outputs that ``function`` computes, if the row exists."""
    gOuts, target, row, rows = destination
    _, _, _, bounds = sources
    first_vec, shape, stride, steps, unpredicated = share
    gShared, rShared, _, _ = shared
    results, vectors, indexed, taken, before = function
    given = taken_values(values, taken, before)
    for step in cutlass.range(steps, unroll=1):
        start = first_vec + step * (stride * shape[1])
        if cutlass.const_expr(steps > 1):
            fetch_step(sources, share, start, vectors)
        if cutlass.const_expr(len(gShared) > 0):
            await_shared(shared, start, bounds, share)
        operands = loaded(sources, share, start, vectors, indexed)
        weights = [rX.load().to(Float32) for rX in rShared]
        rOuts = [cute.make_rmem_tensor(shape, gOut.element_type) for gOut in gOuts]
        written = results(*operands, *weights, *given)
        for rOut, value in zip(rOuts, written):
            if cutlass.const_expr(isinstance(value, cute.TensorSSA)):
                rOut.store(value.to(rOut.element_type))
            else:
                rOut.fill(value)
        if row < rows:
            for rOut, gOut in zip(rOuts, gOuts):
                put(rOut, gOut, target, start, stride, unpredicated)


def dynamic_tail(tail):
    """(``tail``,) as a number known only at run time: for a constant, the compiler would load the last vector whole."""
    return (cutlass.Int32(tail),)


def skewed_at(source_row, n, vec, tail):
    """The position of a row, for ``fetch``, ``put`` and for predicates: each (first vector, skew, length of the row,
    tail). ``tail``: number of values at the end of the tensor that do not fill a vector."""
    begin = source_row * (n // vec) + source_row * (n % vec) // vec  # first vector that the row touches
    skew = source_row * (n % vec) % vec  # values of the previous row in this vector
    at = (begin, skew, n, tail)
    return at, at, at


def columns_of_step(start, bounds, share):
    """Indices along the row of a thread's values of one step."""
    _, shape, stride, _, _ = share
    _, skew, _, _ = bounds
    return positions(start, stride, shape) - Float32(skew)


@cute.jit
def fetch(
    gX: cute.Tensor,
    rX: cute.Tensor,
    source: tuple,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
):
    """Loads a thread's vectors of one step, among those that the row touches. The last ``tail`` values of the tensor do
    not fill a vector."""
    begin, _, _, tail = source
    whole = cute.size(gX, mode=[2]) - 1
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if cutlass.const_expr(i < unpredicated):
            LOAD(gX[None, column, begin], rX[None, i])
        elif column < cute.size(gX, mode=[1]):
            if begin + column < whole:
                LOAD(gX[None, column, begin], rX[None, i])
            else:
                left = (whole - begin - column) * cute.size(rX, mode=[0]) + tail
                for j in cutlass.range_constexpr(cute.size(rX, mode=[0])):
                    if j < left:
                        rX[j, i] = gX[j, column, begin]


@cute.jit
def put(
    rX: cute.Tensor,
    gX: cute.Tensor,
    target: tuple,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
):
    """Stores the row's own values of the vectors that ``fetch`` loads."""
    begin, skew, n, _ = target
    vec = cute.size(rX, mode=[0])
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        before = skew - column * vec
        if cutlass.const_expr(i > 0 and i < unpredicated) or (before <= 0 and before + n >= vec):
            cute.autovec_copy(rX[None, i], gX[None, column, begin])
        else:
            for j in cutlass.range_constexpr(vec):
                if j >= before and j < before + n:
                    gX[j, column, begin] = rX[j, i]


def fold(values, combine, neutral, start, bounds, share):
    """Reduces a thread's values of one step pairwise. Values of neighbouring rows count as ``neutral``."""
    _, shape, stride, _, unpredicated = share
    rValue = cute.make_rmem_tensor(shape, Float32)
    if isinstance(values, cute.TensorSSA):
        rValue.store(values)
    else:
        rValue.fill(values)
    _, skew, n, _ = bounds
    vec, vecs_per_step = shape
    parts = []
    for i in range(vecs_per_step):
        part = pairwise([rValue[j, i] for j in range(vec)], combine)
        if i == 0 or i >= unpredicated:
            part = part_of_row(rValue[None, i], part, skew - (start + i * stride) * vec, n, combine, neutral)
        parts.append(part)
    return pairwise(parts, combine)


@cute.jit
def part_of_row(
    rValue: cute.Tensor,
    part: Float32,
    before: cutlass.Int32,
    n: cutlass.Constexpr,
    combine: cutlass.Constexpr,
    neutral: cutlass.Constexpr,
):
    """``part`` if the whole vector belongs to the row; else reduces its values ``before`` to ``before + n - 1``."""
    vec = cute.size(rValue)
    result = part
    if before > 0 or before + n < vec:
        inner = [cutlass.select_((before <= j) & (j < before + n), rValue[j], Float32(neutral)) for j in range(vec)]
        result = pairwise(inner, combine)
    return result


def inside(start, bounds, share):
    """Number of a thread's values of one step that belong to the row, in fp32."""
    _, shape, stride, _, _ = share
    _, skew, n, _ = bounds
    vec, vecs_per_step = shape
    count = cutlass.Int32(0)
    for i in range(vecs_per_step):
        before = skew - (start + i * stride) * vec
        count += cutlass.max(cutlass.min(before + n, vec) - cutlass.max(before, 0), 0)
    return Float32(count)


def share_of_row(n, vec, stride, loads):
    """Like ``row_reduction``'s, but a row that begins inside a vector touches up to two vectors more than it fills."""
    num_vecs = n // vec if n % vec == 0 else (n + vec - 2) // vec + 1
    vecs_per_step = min(loads, -(-num_vecs // stride))
    steps = -(-num_vecs // (stride * vecs_per_step))
    even = n % vec == 0 and num_vecs % (stride * vecs_per_step) == 0
    unpredicated = vecs_per_step if even else n // vec // stride if steps == 1 else 0
    return num_vecs, vecs_per_step, steps, unpredicated


LOAD = load_lasting


def terms_1(x):
    return (x,)


def terms_2(x, peak):
    exp = cute.math.exp(x - peak)
    return (exp,)


def finish(x, peak, total):
    exp = cute.math.exp(x - peak)
    return (exp * (1.0 / total),)


@cute.jit
def launch(
    x: cute.Tensor,
    out: cute.Tensor,
    stream: cuda.CUstream,
    vec: cutlass.Constexpr = 4,
    threads_per_row: cutlass.Constexpr = 1024,
    rows_per_block: cutlass.Constexpr = 1,
    cluster_n: cutlass.Constexpr = 8,
    loads: cutlass.Constexpr = 4,
):
    rows = x.shape[0]
    n = x.shape[1]
    width = vec  # rows may begin and end inside a vector
    reach = n // width if n % width == 0 else (n + width - 2) // width + 1  # vectors of a row
    whole, tail = rows * n // width, rows * n % width  # vectors of a tensor, and values after them
    gX = view(x.iterator, (width, reach, whole + 1), (1, width, width))
    gOut = view(out.iterator, (width, reach, whole + 1), (1, width, width))
    ops = ((larger, -Float32.inf), (plus, 0.0))
    walks = ((terms_1, (0,), 0, (), (), (0,)), (terms_2, (0,), 0, (0,), (), (1,)))
    reduce_rows(
        ((gX,), (), ()), ((gOut,), (), ()), dynamic_tail(tail),
        (ops, walks, (terms_1, (0,), 0, (), (), (0, 1)), None, ()),
        (None, (finish, (0,), 0, (0, 1), ()), None, skewed_at), (rows, n, width, ()),
        (threads_per_row, rows_per_block, cluster_n, loads), stream,
    )

"""tested: row reduction.

out = (((x - (sum(x) / n)) · rsqrt(((sum((x - (sum(x) / n)) · (x - (sum(x) / n))) / n) + 1e-05))) · w) + b

A row stays in registers between its reductions: it is read once and written once. Each thread issues up to
``loads`` vector loads before it uses the first; where they do not cover its share, it walks the row in steps
and reads it again for every reduction that cannot share a walk.
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
    return not why_not(config, n, n, False, workload.derived)


def plus(a, b):
    return a + b


MAX_VALUES = 96  # of a row in one thread's registers


MAX_LOADS = 64  # vectors of a row that a thread has in flight: stands for all of its share


MAX_ROW = 1 << 24  # positions along a row are exact in fp32


SHORT = 64  # rows up to here may have fewer threads than FEWEST


FEWEST = 8


def width_of(vec, n, run, skewed):
    """Values of a vector, of ``vec`` at most. ``run``: of a row's ``n`` values, how many one stride leads through;
    ``skewed``: may rows begin and end inside a vector?"""
    return vec if skewed and n % vec else math.gcd(run, vec)


def share_of(config, n, run, skewed):
    """Vectors of a row that are one thread's."""
    width = width_of(config["vec"], n, run, skewed)
    return -(-n // (width * config["threads_per_row"] * config["cluster_n"]))


def why_not(config, n, run, skewed, twice):
    """The limit that ``config`` is beyond; empty where it is feasible. ``twice``: may several configs be one kernel?"""
    per_row, loads, vec = config["threads_per_row"], config["loads"], width_of(config["vec"], n, run, skewed)
    threads, share = per_row * config["rows_per_block"], share_of(config, n, run, skewed)
    if n > MAX_ROW:
        return f"a row of {n:,}, of {MAX_ROW:,} at most"
    if threads % 32 or threads > 1024:
        return f"{threads:,} threads in a block, which takes whole warps of 32 and up to 1,024"
    if config["cluster_n"] > per_row:
        return f"a cluster of {config['cluster_n']} blocks, of at most as many as a row has threads in each, {per_row}"
    if per_row < FEWEST and n > SHORT:
        return f"{per_row} threads a row, of {FEWEST} at least for rows longer than {SHORT}"
    if loads >= share and loads != MAX_LOADS and not twice:
        return f"{loads} loads in flight where a thread's share of a row is {share}: {MAX_LOADS} stands for all of it"
    values = vec * min(share, loads)
    return f"{values} values of a row in a thread's registers, of {MAX_VALUES} at most" if values > MAX_VALUES else ""


@cute.jit
def row_reduce(
    value: Float32,
    buffer: cute.Tensor,
    op: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
):
    """Reduces one value a thread over the threads of its row; each of them gets the result.

    Within a warp by shuffles; across the warps of a row through ``buffer`` (rows a block, warps a row), which every
    thread reads: sooner done than shuffling again.
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
    """Every block of a cluster sends its values of a row to every block, through distributed shared memory; each waits
    for all of ``parts`` (blocks, values, rows a block) to arrive. Returns its row's (blocks, values)."""
    tidx, _, _ = cute.arch.thread_idx()
    lane = tidx % threads_per_row
    local_row = tidx // threads_per_row
    bits = cute.recast_tensor(rValue, cutlass.Int32)  # the store takes 32-bit integers
    if tidx == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, cute.size(parts) * 4)
    if lane < cluster_n:
        for i in cutlass.range_constexpr(cute.size(bits)):
            dst = cute.domain_offset((rank, i, local_row), parts).iterator
            cute.arch.store_async_dsmem(dst, bits[i], arrived, lane)
    cute.arch.mbarrier_wait(arrived, phase)
    return parts[None, None, local_row]


EVICT_LAST = 0x14F0000000000000  # what createpolicy.fractional.L2::evict_last makes for all of an access


def load_lasting(gX, rX):
    """Loads a vector, which L2 is to keep rather than what is written (PTX ISA 9.7.9.8, .L2::cache_hint)."""
    width = rX.element_type.width
    bits = math.gcd(cute.size(rX) * width, 128)
    if bits < 32 or gX.stride != (1,) or gX.iterator.max_alignment * 8 % bits:
        cute.autovec_copy(gX, rX)
        return
    load = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), gX.element_type, num_bits_per_copy=bits)
    parts = (bits // width,)
    cute.copy(load, cute.flat_divide(gX, parts), cute.flat_divide(rX, parts), cache_policy=cutlass.Int64(EVICT_LAST))


def together(counts, totals, squares):
    """How many values several parts of a row are, their sum, and their squares about their mean, of each part's.

    Chan, Golub & LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979.
    """
    count, total = pairwise(counts, plus), pairwise(totals, plus)
    mean = centre_of(count, total)
    return count, total, pairwise([s + apart(c, t, mean) for c, t, s in zip(counts, totals, squares)], plus)


def apart(count, total, mean):
    """What a part's squares grow by about another mean than its own."""
    distance = total - count * mean
    return distance * distance * cute.arch.rcp_approx(cute.arch.fmax(count, 1.0))


def centre_of(count, total):
    """Exactly divided: of equal values, whose squares about it must be 0, it is one."""
    return total / cute.arch.fmax(count, 1.0)


def lanes_together(count, total, squares, even, lanes):
    """``together`` of what neighbouring lanes have; ``even``: each as many values."""
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
    """``row_reduce`` of what ``together`` takes, through ``buffer`` (rows a block, warps a row, 3)."""
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
    """``cluster_reduce`` of what ``together`` takes."""
    rValue = cute.make_rmem_tensor(cute.make_layout(3), Float32)
    rValue[0] = count
    rValue[1] = total
    rValue[2] = squares
    sent = exchange(rValue, parts, arrived, phase, rank, threads_per_row, cluster_n)
    counts = [count] * cluster_n
    if cutlass.const_expr(not even):
        counts = values_of(sent[None, 0])
    return together(counts, values_of(sent[None, 1]), values_of(sent[None, 2]))


@cute.jit
def fetch(
    gX: cute.Tensor,
    rX: cute.Tensor,
    row: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    sure: cutlass.Constexpr,
):
    """Loads a thread's vectors of one step, ``start``, ``start + stride``, … of ``row``; ``sure`` are always there."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if i < sure or (column >= 0 if stride < 0 else column < cute.size(gX, mode=[1])):
            LOAD(gX[None, column, row], rX[None, i])


@cute.jit
def put(
    rX: cute.Tensor,
    gX: cute.Tensor,
    row: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    sure: cutlass.Constexpr,
):
    """Stores what ``fetch`` would load."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if i < sure or (column >= 0 if stride < 0 else column < cute.size(gX, mode=[1])):
            cute.autovec_copy(rX[None, i], gX[None, column, row])


def stageable(tensors, slots):
    """Can vectors of them be copied to shared memory as they are, and is there room?"""
    sizes = [cute.size(gX, mode=[0]) * gX.element_type.width // 8 for gX in tensors]
    return all(size in (4, 8, 16) for size in sizes) and sum(sizes) * slots <= 72 << 10


@cute.jit
def stage(gX: cute.Tensor, sX: cute.Tensor, start: cutlass.Int32, stride: cutlass.Constexpr, sure: cutlass.Constexpr):
    """Begins to copy what ``fetch`` would load to a thread's own slots: no register waits for it."""
    copy = cute.nvgpu.cpasync.CopyG2SOp(cache_mode=cute.nvgpu.cpasync.LoadCacheMode.ALWAYS)
    bits = cute.size(gX, mode=[0]) * gX.element_type.width
    atom = cute.make_copy_atom(copy, gX.element_type, num_bits_per_copy=bits)
    for i in cutlass.range_constexpr(cute.size(sX, mode=[1])):
        column = start + i * stride
        if i < sure or column < cute.size(gX, mode=[1]):
            cute.copy(atom, gX[None, column, 0], sX[None, i])
    cute.arch.cp_async_commit_group()


@cute.jit
def unstage(
    sX: cute.Tensor,
    rX: cute.Tensor,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    vectors: cutlass.Constexpr,
    sure: cutlass.Constexpr,
):
    """Reads what ``stage`` copied."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        if i < sure or start + i * stride < vectors:
            cute.autovec_copy(sX[None, i], rX[None, i])


def fold(values, combine, neutral, start, stride, vectors, sure):
    """Reduces a thread's values of one step, pairwise; vectors past the row's end count for nothing."""
    rValue = cute.make_rmem_tensor(values.shape, Float32)
    rValue.store(values)
    vec, held = values.shape
    parts = []
    for i in range(held):
        part = pairwise([rValue[j, i] for j in range(vec)], combine)
        parts += [part if i < sure else cutlass.select_(start + i * stride < vectors, part, Float32(neutral))]
    return pairwise(parts, combine)


def inside(start, stride, vectors, mine, sure):
    """How many of a thread's values of one step lie in the row."""
    vec, held = mine.shape
    count = Float32(vec * sure)
    for i in range(sure, held):
        count += cutlass.select_(start + i * stride < vectors, Float32(vec), Float32(0.0))
    return count


def share_of_row(n, vec, stride, loads):
    """How ``stride`` threads share a row: its vectors; a thread's vectors of a step, and steps; those of a step that
    every thread has: all, or all but the last one of a row's only step."""
    vectors = n // vec
    held = min(loads, -(-vectors // stride))
    steps = -(-vectors // (stride * held))
    sure = held if vectors % (stride * held) == 0 else vectors // stride if steps == 1 else 0
    return vectors, held, steps, sure


LOAD = load_lasting


@cute.kernel
def row_kernel(
    gX: cute.Tensor,
    gW: cute.Tensor,
    gB: cute.Tensor,
    gOut: cute.Tensor,
    rows: cutlass.Constexpr,
    n: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
    rows_per_block: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
    loads: cutlass.Constexpr,
    turns: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    lane = tidx % threads_per_row
    stride = threads_per_row * cluster_n  # vectors of a row that are loaded at once
    vectors, held, steps, sure = share_of_row(n, vec, stride, loads)
    rank = 0  # of this block among those that share its rows
    if cutlass.const_expr(cluster_n > 1):
        rank = cute.arch.block_idx_in_cluster()
    first = rank * threads_per_row + lane
    mine = cute.make_layout((vec, held))

    smem = cutlass.utils.SmemAllocator()
    warps = max(threads_per_row // 32, 1)
    partials = cute.make_layout((rows_per_block, warps), stride=(warps, 1))
    buffer0 = smem.allocate_tensor(Float32, partials, 16)
    buffer1 = smem.allocate_tensor(Float32, partials, 16)
    partial_moments = cute.make_layout((rows_per_block, warps, 3), stride=(3 * warps, 1, warps))
    moments = smem.allocate_tensor(Float32, partial_moments, 16)
    if cutlass.const_expr(cluster_n > 1):
        parts0 = smem.allocate_tensor(Float32, cute.make_layout((cluster_n, 3, rows_per_block, 2)), 16)
        arrived = smem.allocate_array(cutlass.Int64, num_elems=2)
        if tidx == 0:
            cute.arch.mbarrier_init(arrived + 0, 1)
            cute.arch.mbarrier_init(arrived + 1, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()

    rX = cute.make_rmem_tensor(mine, gX.element_type)
    rW = cute.make_rmem_tensor(mine, gW.element_type)
    rB = cute.make_rmem_tensor(mine, gB.element_type)
    nX = cute.make_rmem_tensor(mine, gX.element_type)
    if cutlass.const_expr(sure < held):
        rX.fill(0.0)
        rW.fill(0.0)
        rB.fill(0.0)
        nX.fill(0.0)
    threads = threads_per_row * rows_per_block
    roomy = steps == 1 and 3 * vec * held < 64
    staged = steps == 1 and not roomy and stageable((gW, gB,), held * threads)
    if cutlass.const_expr(roomy):
        fetch(gW, rW, 0, first, stride, sure)
        fetch(gB, rB, 0, first, stride, sure)
    if cutlass.const_expr(staged):
        slots = cute.make_layout((vec, held, threads), stride=(1, vec * threads, vec))
        sW = smem.allocate_tensor(gW.element_type, slots, 16)[None, None, tidx]
        sB = smem.allocate_tensor(gB.element_type, slots, 16)[None, None, tidx]
        stage(gW, sW, first, stride, sure)
        stage(gB, sB, first, stride, sure)
    ahead = staged and turns > 1
    if cutlass.const_expr(ahead):
        next_row = cutlass.min(bidx // cluster_n * turns * rows_per_block + tidx // threads_per_row, rows - 1)
        fetch(gX, nX, next_row, first, stride, sure)
    for turn in cutlass.range(turns, unroll=1):
        row = (bidx // cluster_n * turns + turn) * rows_per_block + tidx // threads_per_row
        # Threads past the last row work on it too, and store nothing: barriers stay uniform.
        source_row = cutlass.min(row, rows - 1)
        if cutlass.const_expr(ahead):
            rX.store(nX.load())
            if turn + 1 < turns:
                next_row = cutlass.min(row + rows_per_block, rows - 1)
                fetch(gX, nX, next_row, first, stride, sure)
        elif cutlass.const_expr(steps == 1):
            fetch(gX, rX, source_row, first, stride, sure)
        
        if cutlass.const_expr(steps == 1 and cluster_n == 1):
            total = Float32(0.0)
            for step in cutlass.range(steps, unroll=1):
                start = first + step * (stride * held)
                if cutlass.const_expr(steps > 1):
                    fetch(gX, rX, source_row, start, stride, sure)
                x = rX.load().to(Float32)
                total = plus(total, fold(x, plus, 0.0, start, stride, vectors, sure))
            total = row_reduce(total, buffer0, plus, threads_per_row)
        
            mean = total / n
            total_2 = Float32(0.0)
            for step in cutlass.range(steps, unroll=1):
                start = first + step * (stride * held)
                if cutlass.const_expr(steps > 1):
                    fetch(gX, rX, source_row, start, stride, sure)
                x = rX.load().to(Float32)
                centred = x - mean
                total_2 = plus(total_2, fold(centred * centred, plus, 0.0, start, stride, vectors, sure))
            total_2 = row_reduce(total_2, buffer1, plus, threads_per_row)
        else:
            seen = Float32(0.0)
            total = Float32(0.0)
            total_2 = Float32(0.0)
            for step in cutlass.range(steps, unroll=1):
                start = first + step * (stride * held)
                if cutlass.const_expr(steps > 1):
                    fetch(gX, rX, source_row, start, stride, sure)
                x = rX.load().to(Float32)
                count = inside(start, stride, vectors, mine, sure)
                part = fold(x, plus, 0.0, start, stride, vectors, sure)
                centre = centre_of(count, part)
                centred_2 = x - centre
                about = fold(centred_2 * centred_2, plus, 0.0, start, stride, vectors, sure)
                if cutlass.const_expr(steps == 1):
                    seen, total, total_2 = count, part, about
                else:
                    seen, total, total_2 = together([seen, count], [total, part], [total_2, about])
            seen, total, total_2 = row_moments(seen, total, total_2, moments, sure == held, threads_per_row)
            if cutlass.const_expr(cluster_n > 1):
                seen, total, total_2 = cluster_moments(
                    seen, total, total_2, parts0[None, None, None, turn % 2], arrived + (0 + turn % 2), turn // 2 % 2, rank, sure == held, threads_per_row, cluster_n
                )
        
        mean = total / n
        variance = total_2 / n
        rstd = cute.math.rsqrt(variance + 1e-05, fastmath=True)
        for step in cutlass.range(steps, unroll=1):
            start = first + step * (stride * held)
            if cutlass.const_expr(steps > 1):
                fetch(gX, rX, source_row, start, stride, sure)
            if cutlass.const_expr(staged):
                cute.arch.cp_async_wait_group(0)
                unstage(sW, rW, start, stride, vectors, sure)
                unstage(sB, rB, start, stride, vectors, sure)
            if cutlass.const_expr(not (roomy or staged)):
                fetch(gW, rW, 0, start, stride, sure)
                fetch(gB, rB, 0, start, stride, sure)
            x = rX.load().to(Float32)
            w = rW.load().to(Float32)
            b = rB.load().to(Float32)
            centred = x - mean
            rOut = cute.make_rmem_tensor(mine, gOut.element_type)
            rOut.store((centred * rstd * w + b).to(gOut.element_type))
            if row < rows:
                put(rOut, gOut, row, start, stride, sure)
        if cutlass.const_expr(turns > 1):
            cute.arch.sync_threads()  # before anyone writes again


@cute.jit
def launch(
    x: cute.Tensor,
    w: cute.Tensor,
    b: cute.Tensor,
    out: cute.Tensor,
    stream: cuda.CUstream,
    vec: cutlass.Constexpr = 8,
    threads_per_row: cutlass.Constexpr = 128,
    rows_per_block: cutlass.Constexpr = 1,
    cluster_n: cutlass.Constexpr = 1,
    loads: cutlass.Constexpr = 64,
):
    rows = x.shape[0]
    n = x.shape[1]
    # Shapes are Python ints here: the widest vector that divides the row needs no scalar tail.
    width = math.gcd(n, vec)
    gX = cute.make_tensor(
        x.iterator, cute.make_layout((width, n // width, rows), stride=(1, width, x.stride[0]))
    )
    gW = cute.make_tensor(
        w.iterator, cute.make_layout((width, n // width, rows), stride=(1, width, 0))
    )
    gB = cute.make_tensor(
        b.iterator, cute.make_layout((width, n // width, rows), stride=(1, width, 0))
    )
    gOut = cute.make_tensor(
        out.iterator, cute.make_layout((width, n // width, rows), stride=(1, width, out.stride[0]))
    )
    groups = (rows + rows_per_block - 1) // rows_per_block
    turns = min(max(groups // 512, 1), 8) if cluster_n > 1 else 1  # of a block, which keeps what rows share
    row_kernel(gX, gW, gB, gOut, rows, n, width, threads_per_row, rows_per_block, cluster_n, loads, turns).launch(
        grid=[(groups + turns - 1) // turns * cluster_n, 1, 1],
        block=[threads_per_row * rows_per_block, 1, 1],
        cluster=[cluster_n, 1, 1] if cutlass.const_expr(cluster_n > 1) else None,
        stream=stream,
    )

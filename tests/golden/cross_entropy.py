"""tested: row reduction.

out = sum over rows of where((t == -100), 0, (neg(((x[:, t] - max(x)) - log(sum(exp((x - max(x))))))) · where((t …

A row stays in registers between its reductions: it is read once and written once. Each thread issues up to
``loads`` vector loads before it uses the first; where they do not cover its share, it walks the row in steps
and reads it again for every reduction that cannot share a walk. What is folded over all rows is left in a
workspace, a value a row, and a second kernel of one block reduces it. The order of every sum is fixed, so
results are the same at every call.
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


def workspace(workload, config):
    """A value for each total and row."""
    return [("row_values", "f32", (2, workload.inputs[1].shape[0]))]


def plus(a, b):
    return a + b


def larger(a, b):
    return cute.arch.fmax(a, b, nan=True)


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
    """Reduces one value a row over the blocks of a cluster."""
    rValue = cute.make_rmem_tensor(cute.make_layout(1), Float32)
    rValue[0] = value
    sent = exchange(rValue, parts, arrived, phase, rank, threads_per_row, cluster_n)
    return pairwise(values_of(sent[None, 0]), op)


def overlapping():
    """Can a kernel start while the one before it ends (PTX ISA 9.7.13.12, griddepcontrol)? From sm_90 on."""
    return cutlass.cutlass_dsl.BaseDSL._get_dsl().get_arch_enum() >= cutlass.Arch.sm_90


@cute.kernel
def total_kernel(
    gNumbers: tuple,
    partials: cute.Tensor,
    gOuts: tuple,
    finish_totals: cutlass.Constexpr,
    ops: cutlass.Constexpr,
    sizes: cutlass.Constexpr,
    n: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    count: cutlass.Constexpr,
    unroll: cutlass.Constexpr,
):
    """``partials`` are (reductions, ``count``) in fp32, ``ops`` functions of two numbers with what changes nothing.

    ``finish_totals`` maps the totals, ``n``, ``count``, ``gNumbers`` (one number each) and ``sizes`` to the outputs.
    """
    tidx, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    warps = cute.make_layout((1, threads // 32))
    buffers = [smem.allocate_tensor(Float32, warps, 16) for _ in ops]
    if cutlass.const_expr(overlapping()):
        cute.arch.griddepcontrol_wait()
    totals = []
    for at, (op, neutral) in enumerate(ops):
        total = Float32(neutral)
        for i in cutlass.range(tidx, count, threads, unroll=unroll):
            total = op(total, partials[at, i])
        totals.append(row_reduce(total, buffers[at], op, threads))
    numbers = [Float32(gNumber[0]) for gNumber in gNumbers]
    if tidx == 0:
        for gOut, result in zip(gOuts, finish_totals(*totals, n, count, *numbers, *sizes)):
            gOut[0] = gOut.element_type(result)


@cute.jit
def finite(top: Float32):
    """What exponents are taken relative to; nothing but -inf was seen where that is the maximum."""
    return top if top > -Float32.inf else Float32(0.0)


@cute.jit
def rescale(before: Float32, after: Float32):
    """What a sum of exponentials relative to one maximum is multiplied by for another."""
    return Float32(1.0) if before == after else cute.math.exp(before - after, fastmath=FAST)


LOAD = cute.autovec_copy  # of a vector, to registers


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


def pick(gX, at, row):
    """The element of a row that ``at`` names: the nearest, where it lies beyond an end."""
    last = cute.size(gX, mode=[0]) - 1
    return Float32(gX[cutlass.min(cutlass.max(cutlass.Int32(at), 0), last), row])


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


def share_of_row(n, vec, stride, loads):
    """How ``stride`` threads share a row: its vectors; a thread's vectors of a step, and steps; those of a step that
    every thread has: all, or all but the last one of a row's only step."""
    vectors = n // vec
    held = min(loads, -(-vectors // stride))
    steps = -(-vectors // (stride * held))
    sure = held if vectors % (stride * held) == 0 else vectors // stride if steps == 1 else 0
    return vectors, held, steps, sure


FAST = True


@cute.kernel
def row_kernel(
    gX: cute.Tensor,
    gT: cute.Tensor,
    gXPicked: cute.Tensor,
    row_values: cute.Tensor,
    rows: cutlass.Constexpr,
    n: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
    rows_per_block: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
    loads: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    if cutlass.const_expr(overlapping()):
        cute.arch.griddepcontrol_launch_dependents()
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
    if cutlass.const_expr(cluster_n > 1):
        parts0 = smem.allocate_tensor(Float32, cute.make_layout((cluster_n, 1, rows_per_block)), 16)
        parts1 = smem.allocate_tensor(Float32, cute.make_layout((cluster_n, 1, rows_per_block)), 16)
        arrived = smem.allocate_array(cutlass.Int64, num_elems=2)
        if tidx == 0:
            cute.arch.mbarrier_init(arrived + 0, 1)
            cute.arch.mbarrier_init(arrived + 1, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()

    rX = cute.make_rmem_tensor(mine, gX.element_type)
    if cutlass.const_expr(sure < held):
        rX.fill(0.0)
    row = bidx // cluster_n * rows_per_block + tidx // threads_per_row
    # Threads past the last row work on it too, and store nothing: barriers stay uniform.
    source_row = cutlass.min(row, rows - 1)
    if cutlass.const_expr(steps == 1):
        fetch(gX, rX, source_row, first, stride, sure)
    t = Float32(gT[source_row])
    picked = pick(gXPicked, t, source_row)

    if cutlass.const_expr(steps == 1):
        peak = Float32(-Float32.inf)
        for step in cutlass.range(steps, unroll=1):
            start = first + step * (stride * held)
            if cutlass.const_expr(steps > 1):
                fetch(gX, rX, source_row, start, stride, sure)
            x = rX.load().to(Float32)
            peak = larger(peak, fold(x, larger, -Float32.inf, start, stride, vectors, sure))
        peak = row_reduce(peak, buffer0, larger, threads_per_row)
        if cutlass.const_expr(cluster_n > 1):
            peak = cluster_reduce(
                peak, parts0, arrived + 0, 0, rank, larger, threads_per_row, cluster_n
            )

        total = Float32(0.0)
        for step in cutlass.range(steps, unroll=1):
            start = first + step * (stride * held)
            if cutlass.const_expr(steps > 1):
                fetch(gX, rX, source_row, start, stride, sure)
            x = rX.load().to(Float32)
            total = plus(total, fold(cute.math.exp(x - peak, fastmath=True), plus, 0.0, start, stride, vectors, sure))
        total = row_reduce(total, buffer1, plus, threads_per_row)
        if cutlass.const_expr(cluster_n > 1):
            total = cluster_reduce(
                total, parts1, arrived + 1, 0, rank, plus, threads_per_row, cluster_n
            )
    else:
        peak = Float32(-Float32.inf)
        total = Float32(0.0)
        for step in cutlass.range(steps, unroll=1):
            start = first + step * (stride * held)
            if cutlass.const_expr(steps > 1):
                fetch(gX, rX, source_row, start, stride, sure)
            x = rX.load().to(Float32)
            grown = larger(peak, fold(x, larger, -Float32.inf, start, stride, vectors, sure))
            shift = finite(grown)
            total = total * rescale(peak, grown) + fold(cute.math.exp(x - shift, fastmath=True), plus, 0.0, start, stride, vectors, sure)
            peak = grown
        own = peak
        peak = row_reduce(own, buffer0, larger, threads_per_row)
        if cutlass.const_expr(cluster_n > 1):
            peak = cluster_reduce(
                peak, parts0, arrived + 0, 0, rank, larger, threads_per_row, cluster_n
            )
        total = row_reduce(total * rescale(own, peak), buffer1, plus, threads_per_row)
        if cutlass.const_expr(cluster_n > 1):
            total = cluster_reduce(
                total, parts1, arrived + 1, 0, rank, plus, threads_per_row, cluster_n
            )

    value = t == -100.0
    chosen = (Float32(0.0) if value else Float32(1.0))
    d = picked - peak - cute.math.log(total, fastmath=True)
    if row < rows and first == 0:
        row_values[0, row] = Float32((Float32(0.0) if value else -d * chosen))
        row_values[1, row] = Float32(chosen)


def finish_totals(total_2, total_3, n, rows):
    return (total_2 / total_3,)


@cute.jit
def launch(
    x: cute.Tensor,
    t: cute.Tensor,
    out: cute.Tensor,
    row_values: cute.Tensor,
    stream: cuda.CUstream,
    vec: cutlass.Constexpr = 8,
    threads_per_row: cutlass.Constexpr = 256,
    rows_per_block: cutlass.Constexpr = 1,
    cluster_n: cutlass.Constexpr = 1,
    loads: cutlass.Constexpr = 2,
):
    rows = t.shape[0]
    n = x.shape[1]
    # Shapes are Python ints here: the widest vector that divides the row needs no scalar tail.
    width = math.gcd(n, vec)
    gX = cute.make_tensor(
        x.iterator, cute.make_layout((width, n // width, rows), stride=(1, width, x.stride[0]))
    )
    gT = cute.make_tensor(t.iterator, cute.make_layout(rows, stride=t.stride[0]))
    gXPicked = cute.make_tensor(
        x.iterator, cute.make_layout((x.shape[1], rows), stride=(x.stride[1], x.stride[0]))
    )
    gOut = cute.make_tensor(out.iterator, cute.make_layout(rows, stride=0))
    row_kernel(gX, gT, gXPicked, row_values, rows, n, width, threads_per_row, rows_per_block, cluster_n, loads).launch(
        grid=[(rows + rows_per_block - 1) // rows_per_block * cluster_n, 1, 1],
        block=[threads_per_row * rows_per_block, 1, 1],
        cluster=[cluster_n, 1, 1] if cutlass.const_expr(cluster_n > 1) else None,
        stream=stream,
    )
    total_kernel(
        (), row_values, (gOut,), finish_totals, ((plus, 0.0), (plus, 0.0)), (), n,
        min(1024, (rows + 31) // 32 * 32), rows, 8,
    ).launch(
        grid=[1, 1, 1], block=[min(1024, (rows + 31) // 32 * 32), 1, 1], stream=stream, use_pdl=overlapping()
    )

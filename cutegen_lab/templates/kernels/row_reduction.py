"""Reductions of rows: a row stays in registers between its reductions, and is read once.

A row is split over ``threads_per_row`` threads of each of ``cluster_n`` blocks. Each thread reduces its share
(``fold``); the results are reduced over the row's warps (``row_reduce``), then over the cluster's blocks
(``cluster_reduce``). A share is processed in steps of up to ``loads`` vectors, all loaded before the first is used.
Reductions that do not depend on each other share one pass over the row; reductions that need their results take
another.

Tensors are (values of a vector, vectors of a row, rows), or (rows) with one value per row. Functions of the problem
take fp32 vectors and *values*, which are constant along a row: results of reductions, sizes, inputs with one value per
row. A function is given as ``(function, vectors, indexed, values, before)``. ``vectors`` and ``values`` are the indices
of its arguments. ``indexed`` is 1 if it takes the indices along the row, else 0. ``before`` is ``((function,
values),)`` for further values that are computed once per pass, or empty. ``skewed_rows`` overrides the functions
that depend on where a row begins, for rows that begin inside a vector.

| the kernel's parameters | |
|---|---|
| ``inputs`` | ``gXs`` along the row, ``gShared`` the same for all rows (weights), ``gSingles`` per row or indexed |
| ``outputs`` | ``gOuts`` along the row, ``gResults`` once per row, ``gTotals`` workspace for terms reduced over rows |
| ``tails`` | further arguments of ``skewed_at`` |
| ``reductions`` | ``ops, walks, online, moments, rest`` |
| ``functions`` | ``per_row, outs, results, skewed_at`` |
| ``problem`` | ``rows, n, vec, sizes``: rows, values per row, values per vector, sizes that functions take |
| ``config`` | ``threads_per_row, rows_per_block, cluster_n, loads, turns``; ``turns``: groups of rows per block |
| | |
| ``ops`` | each reduction as (function of two numbers, its neutral element) |
| ``walks`` | passes over the row: the function for the terms to reduce, the indices of its reductions |
| ``online`` | the pass for a maximum and a sum of exponentials relative to it, if a row takes several steps |
| ``moments`` | the pass for a sum and squared deviations (last in ``ops``), if a row takes several steps or blocks |
| ``rest`` | the passes that remain after ``online`` or ``moments`` |
| ``per_row`` | the function from ``gSingles`` to values |
| ``outs`` | the function for outputs along the row; it also takes all of ``gShared`` |
| ``results`` | the function for outputs once per row, and for terms that are reduced over rows |
| ``skewed_at`` | the position of a row that begins inside a vector: see ``skewed_rows`` |

| parameters of device functions | |
|---|---|
| ``share`` | ``first_vec, shape, stride, steps, unpredicated`` of a thread; ``shape``: values, vectors per step |
| ``sources`` | ``gXs, rXs, source, bounds``: inputs, their registers for a step, the row's position, its end |
| ``destination`` | ``gOuts, target, row, rows``: outputs, the row's position, its index, number of rows |
| ``buffers`` | ``sPartials, sExchanges, arrived``: shared memory for warps and for blocks of a cluster, mbarriers |
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.cluster_reduce import cluster_reduce
from cutegen_lab.templates.kernels.device.finish import reduce_partials  # noqa: F401 - of totals
from cutegen_lab.templates.kernels.device.lasting_loads import load_lasting  # noqa: F401 - for LOAD
from cutegen_lab.templates.kernels.device.math import larger, plus
from cutegen_lab.templates.kernels.device.moments import centre_of, cluster_moments, row_moments, together
from cutegen_lab.templates.kernels.device.online_softmax import FAST, SHIFT, rescale, zero_if_infinite  # noqa: F401
from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait
from cutegen_lab.templates.kernels.device.row_io import fetch, pick, positions, put  # noqa: F401 - pick: for per_row
from cutegen_lab.templates.kernels.device.row_reduce import pairwise, row_reduce
from cutegen_lab.templates.kernels.device.row_staging import stage, stageable, unstage
from cutegen_lab.templates.kernels.device.views import view  # noqa: F401 - for launch

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
    )  # fmt: skip


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


def share_of_row(n, vec, stride, loads):
    """How ``stride`` threads share a row: (its ``num_vecs``, a thread's ``vecs_per_step``, ``steps``, ``unpredicated``:
    number of vectors of each step that every thread has, or 0 if a row has several steps and the last is not full)."""
    num_vecs = n // vec
    vecs_per_step = min(loads, -(-num_vecs // stride))
    steps = -(-num_vecs // (stride * vecs_per_step))
    even = num_vecs % (stride * vecs_per_step) == 0
    unpredicated = vecs_per_step if even else num_vecs // stride if steps == 1 else 0
    return num_vecs, vecs_per_step, steps, unpredicated


def columns_of_step(start, bounds, share):
    """Indices along the row of a thread's values of one step."""
    _, shape, stride, _, _ = share
    return positions(start, stride, shape)


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


def fold(values, combine, neutral, start, bounds, share):
    """Reduces a thread's values of one step pairwise. Vectors past the row's end count as ``neutral``."""
    _, shape, stride, _, unpredicated = share
    rValue = cute.make_rmem_tensor(shape, Float32)
    if isinstance(values, cute.TensorSSA):
        rValue.store(values)
    else:
        rValue.fill(values)
    vec, vecs_per_step = shape
    parts = []
    for i in range(vecs_per_step):
        part = pairwise([rValue[j, i] for j in range(vec)], combine)
        if i >= unpredicated:
            part = cutlass.select_(start + i * stride < bounds, part, Float32(neutral))
        parts.append(part)
    return pairwise(parts, combine)


def inside(start, bounds, share):
    """Number of a thread's values of one step that lie in the row, in fp32."""
    _, shape, stride, _, unpredicated = share
    vec, vecs_per_step = shape
    count = Float32(vec * unpredicated)
    for i in range(unpredicated, vecs_per_step):
        count += cutlass.select_(start + i * stride < bounds, Float32(vec), Float32(0.0))
    return count

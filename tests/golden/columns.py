"""tested: column reduction.

out = sum(x)

Threads lie along the contiguous columns; the slices of a block, and the blocks of a cluster, share the
reduced dimension. The order of every sum is fixed, so results are the same at every call.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass import Float32

TUNABLE = {
    "vec": (1, 2, 4, 8),
    "threads": (16, 32, 64, 128, 256),
    "slices": (1, 2, 4, 8, 16, 32),
    "cluster_m": (1, 2, 4, 8),
    "loads": (1, 2, 4, 8),
}


def constraints(config, workload, device):
    return not why_not(config)


def plus(a, b):
    return a + b


MAX_SMEM = 48 << 10


def why_not(config):
    """The limit that ``config`` exceeds, as text; "" if it is feasible."""
    threads = config["threads"] * config["slices"]
    if threads > 1024:
        return f"{threads:,} threads in a block (at most 1,024)"
    smem = 4 * threads * config["vec"]
    return f"{smem:,} bytes of shared memory for partial results (at most {MAX_SMEM:,})" if smem > MAX_SMEM else ""


OVERLAP = False  # whether all kernels of this module start early; set by modules with several kernels


def overlapping():
    """Whether a kernel can start before the previous one has ended: from sm_90 on."""
    return cutlass.cutlass_dsl.BaseDSL._get_dsl().get_arch_enum() >= cutlass.Arch.sm_90


def start_next_and_wait():
    """Lets the next kernel start, then waits until the previous kernel's writes are visible."""
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()


def view(pointer, shape, stride):
    """The memory at ``pointer`` as a tensor with this shape, and strides in elements."""
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))


def reduce_columns(
    gXs, gOuts, gResults, walks, outs, results, counted, sizes, threads, slices, cluster_m, loads, stream
):
    """Launches a block, or a cluster of ``cluster_m`` blocks, per ``threads`` vectors of columns."""
    columns = cute.size((*gOuts, *gResults)[0], mode=[1])
    column_kernel(gXs, gOuts, gResults, walks, outs, results, counted, sizes, threads, slices, cluster_m, loads).launch(
        grid=[(columns + threads - 1) // threads * cluster_m, 1, 1],
        block=[threads, slices, 1],
        cluster=[cluster_m, 1, 1] if cluster_m > 1 else None,
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


@cute.kernel
def column_kernel(
    gXs: tuple,
    gOuts: tuple,
    gResults: tuple,
    walks: cutlass.Constexpr,
    outs: cutlass.Constexpr,
    results: cutlass.Constexpr,
    counted: cutlass.Constexpr,
    sizes: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    slices: cutlass.Constexpr,
    cluster_m: cutlass.Constexpr,
    loads: cutlass.Constexpr,
):
    """``walks`` has for each reduction its function, the indices of its inputs in ``gXs``, and its operators.

    Operators: combine for vectors, combine for numbers, neutral element. ``outs`` and ``results`` are (function,
    inputs) of outputs that vary along the rows, and of outputs with one value per column. Functions take fp32 vectors,
    earlier results (and the number of rows and the row index if ``counted``), and ``sizes``.
    """
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    tidx, slice_, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    vec, columns, n = (cute.size((*gOuts, *gResults)[0], mode=[d]) for d in range(3))
    column = bidx // cluster_m * threads + tidx
    first = slice_  # first row of this thread
    if cutlass.const_expr(cluster_m > 1):
        first = cute.arch.block_idx_in_cluster() * slices + slice_
    step = slices * cluster_m
    whole = n // (step * loads) * step * loads  # rows in batches that are full for every thread
    rest = (n - whole + step - 1) // step  # remaining rows of each thread; the last may lie past the end
    # Threads past the last column recompute it and store nothing, so that all threads reach each barrier.
    source = cutlass.min(column, columns - 1)
    smem = cutlass.utils.SmemAllocator()
    layout = cute.make_layout((vec, threads, slices), stride=(1, vec, vec * threads))
    partials = smem.allocate_tensor(Float32, layout, 16)
    extent = None
    if cutlass.const_expr(counted):
        rExtent = cute.make_rmem_tensor(vec, Float32)
        rExtent.fill(n)
        extent = rExtent.load()

    reduced = []
    for function, takes, (op_of_vectors, op, neutral) in walks:
        gTaken = [gXs[at] for at in takes]
        rTotal = cute.make_rmem_tensor(vec, Float32)
        rTotal.fill(neutral)
        for start in cutlass.range(first, whole, step * loads, unroll=1):
            rXs = loaded_rows(gTaken, (vec, loads), source, [start + u * step for u in range(loads)])
            for u in cutlass.range_constexpr(loads):
                value = function(*vectors_of(rXs, u), *reduced, *counts(extent, start + u * step), *sizes)
                rTotal.store(op_of_vectors(rTotal.load(), value))
        for start in cutlass.range(whole + first, n, step * loads, unroll=1):
            rows = (cutlass.min(start + u * step, n - 1) for u in range(rest))
            rXs = loaded_rows(gTaken, (vec, loads), source, rows)
            for u in cutlass.range_constexpr(rest):
                value = function(*vectors_of(rXs, u), *reduced, *counts(extent, start + u * step), *sizes)
                inside = cute.full_like(rTotal.load(), start + u * step < n, cutlass.Boolean)
                rTotal.store(cute.where(inside, op_of_vectors(rTotal.load(), value), rTotal.load()))
        if cutlass.const_expr(slices * cluster_m > 1):
            meet(rTotal, partials, tidx, slice_, op, slices, cluster_m)
        reduced.append(rTotal.load())

    if cutlass.const_expr(len(gResults) > 0):
        function, takes = results
        if column < columns and first == 0:
            rXs = loaded_rows([gXs[at] for at in takes], (vec, 1), source, [0])
            store(function(*vectors_of(rXs, 0), *reduced, *counts(extent, 0), *sizes), gResults, column, 0)
    if cutlass.const_expr(len(gOuts) > 0):
        function, takes = outs
        gTaken = [gXs[at] for at in takes]
        for start in cutlass.range(first, whole, step * loads, unroll=1):
            rXs = loaded_rows(gTaken, (vec, loads), source, [start + u * step for u in range(loads)])
            for u in cutlass.range_constexpr(loads):
                i = start + u * step
                values = function(*vectors_of(rXs, u), *reduced, *counts(extent, i), *sizes)
                if column < columns:
                    store(values, gOuts, column, i)
        for start in cutlass.range(whole + first, n, step * loads, unroll=1):
            rows = (cutlass.min(start + u * step, n - 1) for u in range(rest))
            rXs = loaded_rows(gTaken, (vec, loads), source, rows)
            for u in cutlass.range_constexpr(rest):
                i = start + u * step
                values = function(*vectors_of(rXs, u), *reduced, *counts(extent, i), *sizes)
                if column < columns and i < n:
                    store(values, gOuts, column, i)


def loaded_rows(gXs, shape, column, rows):
    """Loads ``rows`` of a column: for each of ``gXs`` a register tensor of ``shape`` (values of a vector, rows)."""
    rXs = [cute.make_rmem_tensor(shape, gX.element_type) for gX in gXs]
    for u, row in enumerate(rows):
        for gX, rX in zip(gXs, rXs):
            if cute.rank(gX) == 2:
                rX[None, u].fill(gX[column, row])
            else:
                cute.autovec_copy(gX[None, column, row], rX[None, u])
    return rXs


def vectors_of(rXs, u):
    """Row ``u`` of each register tensor, as fp32 vectors."""
    return [rX[None, u].load().to(Float32) for rX in rXs]


def counts(extent, row):
    """(number of rows, index of this row) as vectors; empty if ``extent`` is None."""
    return [] if extent is None else [extent, cute.full_like(extent, Float32(row))]


def store(values, gOuts, column, row):
    for value, gOut in zip(values, gOuts):
        rOut = cute.make_rmem_tensor(cute.size(gOut, mode=[0]), gOut.element_type)
        rOut.store(value.to(gOut.element_type))
        cute.autovec_copy(rOut, gOut[None, column, row])


@cute.jit
def meet(
    rX: cute.Tensor,
    partials: cute.Tensor,
    column: cutlass.Int32,
    slice_: cutlass.Int32,
    op: cutlass.Constexpr,
    slices: cutlass.Constexpr,
    cluster_m: cutlass.Constexpr,
):
    """Reduces a column over a block's slices, then over the blocks of its cluster in order of their ranks. Every thread
    of the column gets the result."""
    first = partials[None, column, 0]
    rOther = cute.make_fragment_like(rX)
    cute.autovec_copy(rX, partials[None, column, slice_])
    cute.arch.sync_threads()
    if slice_ == 0:
        for other in cutlass.range_constexpr(1, slices):
            cute.autovec_copy(partials[None, column, other], rOther)
            join(rX, rOther, op)
        if cutlass.const_expr(cluster_m > 1):
            cute.autovec_copy(rX, first)
    if cutlass.const_expr(cluster_m > 1):
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if slice_ == 0:
            for rank in cutlass.range_constexpr(cluster_m):
                src = cute.make_tensor(cute.arch.map_dsmem_ptr(partials.iterator, rank), partials.layout)
                if cutlass.const_expr(rank == 0):
                    cute.autovec_copy(src[None, column, 0], rX)
                else:
                    cute.autovec_copy(src[None, column, 0], rOther)
                    join(rX, rOther, op)
        cute.arch.cluster_arrive()  # no block overwrites its partial results or exits before all have read them
        cute.arch.cluster_wait()
    if slice_ == 0:
        cute.autovec_copy(rX, first)
    cute.arch.sync_threads()
    cute.autovec_copy(first, rX)
    cute.arch.sync_threads()  # the next reduction overwrites the partial results


def join(rX, rOther, op):
    for v in range(cute.size(rX)):
        rX[v] = op(rX[v], rOther[v])


def for_total(x):
    return x


def results(total):
    return (total,)


@cute.jit
def launch(
    x: cute.Tensor,
    out: cute.Tensor,
    stream: cuda.CUstream,
    vec: cutlass.Constexpr = 4,
    threads: cutlass.Constexpr = 16,
    slices: cutlass.Constexpr = 32,
    cluster_m: cutlass.Constexpr = 8,
    loads: cutlass.Constexpr = 8,
):
    n = x.shape[0]
    inner = x.shape[1]
    outer = 1
    # Shapes are Python ints here: the widest vector that divides the last dimension needs no scalar tail.
    width = math.gcd(inner, vec)
    columns = inner // width * outer
    gX = view(x.iterator, (width, (inner // width, outer), n), (1, (width, 0), x.stride[0]))
    gOut = view(out.iterator, (width, (inner // width, outer), n), (1, (width, 0), 0))
    reduce_columns(
        (gX,), (), (gOut,), ((for_total, (0,), (plus, plus, 0.0)),), None, (results, ()), False, (), threads,
        slices, cluster_m, loads, stream,
    )

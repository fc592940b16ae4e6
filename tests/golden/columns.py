"""tested: column reduction.

out = sum(x)

Threads lie along the contiguous columns and share the walk down the reduced dimension in slices, and in
clusters of blocks. The order of every sum is fixed, so results are the same at every call.
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
    """The limit that ``config`` is beyond; empty where it is feasible."""
    threads = config["threads"] * config["slices"]
    if threads > 1024:
        return f"{threads:,} threads in a block, of 1,024 at most"
    smem = 4 * threads * config["vec"]
    return f"{smem:,} bytes of shared memory for partial results, of {MAX_SMEM:,} at most" if smem > MAX_SMEM else ""


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
    """Reduces a column over a block's slices, and over the blocks of its cluster in the order of their ranks; every
    thread of the column gets the result."""
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
        cute.arch.cluster_arrive()  # nobody writes again, or leaves, before all have read
        cute.arch.cluster_wait()
    if slice_ == 0:
        cute.autovec_copy(rX, first)
    cute.arch.sync_threads()
    cute.autovec_copy(first, rX)
    cute.arch.sync_threads()  # the partial results make room for the next reduction's


def join(rX, rOther, op):
    for v in range(cute.size(rX)):
        rX[v] = op(rX[v], rOther[v])


@cute.kernel
def column_kernel(
    gX: cute.Tensor,
    gOut: cute.Tensor,
    n: cutlass.Constexpr,
    columns: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    slices: cutlass.Constexpr,
    cluster_m: cutlass.Constexpr,
    loads: cutlass.Constexpr,
):
    tidx, slice_, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    column = bidx // cluster_m * threads + tidx
    first = slice_  # of the rows this thread walks
    if cutlass.const_expr(cluster_m > 1):
        first = cute.arch.block_idx_in_cluster() * slices + slice_
    step = slices * cluster_m
    whole = n // (step * loads) * step * loads  # rows, in batches that every thread has all of
    rest = (n - whole + step - 1) // step  # rows of a thread after them; its last may lie past the end
    # Threads past the last column work on it too, and store nothing: barriers stay uniform.
    source = cutlass.min(column, columns - 1)
    mine, batch = cute.make_layout(vec), cute.make_layout((vec, loads))
    smem = cutlass.utils.SmemAllocator()
    partials = smem.allocate_tensor(
        Float32, cute.make_layout((vec, threads, slices), stride=(1, vec, vec * threads)), 16
    )
    rZero = cute.make_rmem_tensor(mine, Float32)
    rZero.fill(0.0)
    extent = cute.full_like(rZero.load(), n)

    rTotal = cute.make_rmem_tensor(mine, Float32)
    rTotal.fill(0.0)
    for start in cutlass.range(first, whole, step * loads, unroll=1):
        rX = cute.make_rmem_tensor(batch, gX.element_type)
        for u in cutlass.range_constexpr(loads):
            at = start + u * step
            cute.autovec_copy(gX[None, source, at], rX[None, u])
        for u in cutlass.range_constexpr(loads):
            i = start + u * step
            x = rX[None, u].load().to(Float32)
            rTotal.store(plus(rTotal.load(), x))
    for start in cutlass.range(whole + first, n, step * loads, unroll=1):
        rX = cute.make_rmem_tensor(batch, gX.element_type)
        for u in cutlass.range_constexpr(rest):
            at = cutlass.min(start + u * step, n - 1)
            cute.autovec_copy(gX[None, source, at], rX[None, u])
        for u in cutlass.range_constexpr(rest):
            i = start + u * step
            x = rX[None, u].load().to(Float32)
            inside = cute.full_like(extent, i < n, cutlass.Boolean)
            rTotal.store(cute.where(inside, plus(rTotal.load(), x), rTotal.load()))
    if cutlass.const_expr(slices * cluster_m > 1):
        meet(rTotal, partials, tidx, slice_, plus, slices, cluster_m)
    total = rTotal.load()

    if column < columns and first == 0:
        i = 0
        rOut = cute.make_rmem_tensor(mine, gOut.element_type)
        rOut.store((total).to(gOut.element_type))
        cute.autovec_copy(rOut, gOut[None, column, 0])


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
    gX = cute.make_tensor(
        x.iterator, cute.make_layout((width, (inner // width, outer), n), stride=(1, (width, 0), x.stride[0]))
    )
    gOut = cute.make_tensor(
        out.iterator, cute.make_layout((width, (inner // width, outer), n), stride=(1, (width, 0), 0))
    )
    column_kernel(gX, gOut, n, columns, width, threads, slices, cluster_m, loads).launch(
        grid=[(columns + threads - 1) // threads * cluster_m, 1, 1],
        block=[threads, slices, 1],
        cluster=[cluster_m, 1, 1] if cutlass.const_expr(cluster_m > 1) else None,
        stream=stream,
    )

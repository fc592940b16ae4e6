"""What kernels for reductions over dimensions before the last call: columns meet over slices and blocks of a cluster.

Threads lie along the inner dimensions, which stay contiguous. Each thread owns ``vec`` adjacent columns and, with
``slices - 1`` others, walks down the reduced dimension; the slices' partial results meet in shared memory, and those of
a cluster's ``cluster_m`` blocks in its distributed shared memory.
"""

import cutlass
import cutlass.cute as cute


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

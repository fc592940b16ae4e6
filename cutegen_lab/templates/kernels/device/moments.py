"""Mean and sum of squared deviations of a row, combined from parts: lanes, warps, blocks of a cluster."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.cluster_reduce import exchange
from cutegen_lab.templates.kernels.device.math import plus
from cutegen_lab.templates.kernels.device.row_reduce import pairwise, values_of


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

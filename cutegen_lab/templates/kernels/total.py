"""Full reductions: all elements are reduced to single numbers, by two kernels, so that the whole GPU takes part.

Each block of the first kernel reduces a share of the elements and writes its partial results to a workspace. The second
kernel, one block, reduces these and computes the results. The order of every sum is fixed, so results are the same at
every call.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.finish import reduce_partials  # noqa: F401 - the second
from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping
from cutegen_lab.templates.kernels.device.row_io import fetch
from cutegen_lab.templates.kernels.device.row_reduce import pairwise, row_reduce, values_of
from cutegen_lab.templates.kernels.device.views import view  # noqa: F401 - for launch


def partial_totals(gXs, gNumbers, partials, reduced, ops, sizes, n, threads, loads, blocks, stream):
    """Launches ``blocks`` blocks. Each writes one partial result per reduction to ``partials``."""
    partial_kernel(gXs, gNumbers, partials, reduced, ops, sizes, n, threads, loads, blocks).launch(
        grid=[blocks, 1, 1], block=[threads, 1, 1], stream=stream, use_pdl=OVERLAP and overlapping()
    )


@cute.kernel
def partial_kernel(
    gXs: tuple,
    gNumbers: tuple,
    partials: cute.Tensor,
    reduced: cutlass.Constexpr,
    ops: cutlass.Constexpr,
    sizes: cutlass.Constexpr,
    n: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    loads: cutlass.Constexpr,
    blocks: cutlass.Constexpr,
):
    """``gXs`` are (values of a vector, vectors, 1), ``gNumbers`` one number each, ``partials`` (reductions, blocks).

    ``reduced`` maps fp32 vectors of ``gXs``, ``n`` (the number of elements), ``gNumbers`` and ``sizes`` to a vector for
    each reduction. ``ops``, per reduction: combine for vectors, combine for numbers, neutral element.
    """
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    if cutlass.const_expr(overlapping()):
        cute.arch.griddepcontrol_launch_dependents()
        if cutlass.const_expr(OVERLAP):
            cute.arch.griddepcontrol_wait()
    vec, vectors = (cute.size(gXs[0], mode=[d]) for d in range(2))
    share = threads * loads  # vectors that a block loads per step
    steps = (vectors + share * blocks - 1) // (share * blocks)
    ragged = vectors % (share * blocks) != 0
    smem = cutlass.utils.SmemAllocator()
    warps = cute.make_layout((1, threads // 32))
    buffers = [smem.allocate_tensor(Float32, warps, 16) for _ in ops]
    rXs = [cute.make_rmem_tensor((vec, loads), gX.element_type) for gX in gXs]
    rTotals = [cute.make_rmem_tensor((vec, loads), Float32) for _ in ops]
    for rEach, start_value in zip((*rXs, *rTotals), (*[0.0 for _ in gXs], *[neutral for _, _, neutral in ops])):
        rEach.fill(start_value)
    numbers = [Float32(gNumber[0]) for gNumber in gNumbers]
    for step in cutlass.range(steps, unroll=1):
        start = (step * blocks + bidx) * share + tidx
        for gX, rX in zip(gXs, rXs):
            fetch(gX, rX, 0, start, threads, 0 if ragged else loads)
        values = reduced(*[rX.load().to(Float32) for rX in rXs], n, *numbers, *sizes)
        inside = None
        if cutlass.const_expr(ragged):
            inside = vectors_inside(start, threads, vectors, rXs[0].shape)
        for rTotal, value, (op_of_vectors, _, neutral) in zip(rTotals, values, ops):
            if cutlass.const_expr(ragged):
                value = cute.where(inside, value, cute.full_like(value, neutral))
            rTotal.store(op_of_vectors(rTotal.load(), value))
    totals = [
        row_reduce(pairwise(values_of(rTotal), op), buffer, op, threads)
        for rTotal, buffer, (_, op, _) in zip(rTotals, buffers, ops)
    ]
    if tidx == 0:
        for at, total in enumerate(totals):
            partials[at, bidx] = total


def vectors_inside(start, stride, vectors, shape):
    """Predicates of ``shape`` (values of a vector, loads): true if ``start + i * stride`` is below ``vectors``."""
    vec, loads = shape
    rInside = cute.make_rmem_tensor(shape, Float32)
    for i in range(loads):
        left = cutlass.max(vectors - (start + i * stride), 0)
        for j in range(vec):
            rInside[j, i] = Float32(cutlass.min(left, 1))
    return rInside.load() > 0.0

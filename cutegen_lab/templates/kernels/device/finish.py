"""The second kernel of a full reduction: one block reduces the partial results and computes the outputs."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping
from cutegen_lab.templates.kernels.device.row_reduce import row_reduce


def reduce_partials(gNumbers, partials, gOuts, finish_totals, ops, sizes, n, threads, count, unroll, stream):
    """Launches one block, which may start before the first kernel has ended."""
    total_kernel(gNumbers, partials, gOuts, finish_totals, ops, sizes, n, threads, count, unroll).launch(
        grid=[1, 1, 1], block=[threads, 1, 1], stream=stream, use_pdl=overlapping()
    )


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
    """``partials`` is (reductions, ``count``) in fp32, ``ops`` has (combine for numbers, neutral element) for each.

    ``finish_totals`` maps the totals, ``n``, ``count``, ``gNumbers`` (one number each) and ``sizes`` to the outputs.
    """
    if cutlass.const_expr(OVERLAP and overlapping()):
        cute.arch.griddepcontrol_launch_dependents()
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
        results = finish_totals(*totals, n, count, *numbers, *sizes)
        for gOut, result in zip(gOuts, results):
            gOut[0] = gOut.element_type(result)

"""tested: total.

out = sum((x - y) · (x - y)) / n

The blocks of the first kernel share the elements and store one partial result each; the second kernel reduces
these. The order of every sum is fixed, so results are the same at every call.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass import Float32

TUNABLE = {
    "vec": (1, 2, 4, 8, 16),
    "threads": (64, 128, 256, 512, 1024),
    "loads": (1, 2, 4, 8),
    "blocks": (66, 132, 264, 528, 1056, 2112),
}


def constraints(config, workload, device):
    return not why_not(config)


def workspace(workload, config):
    """Workspace: per reduction, a partial result per block."""
    return [("partials", "f32", (1, config["blocks"]))]


def plus(a, b):
    return a + b


MAX_VALUES = 64  # per thread, in registers


def why_not(config):
    """The limit that ``config`` exceeds, as text; "" if it is feasible."""
    values = config["vec"] * config["loads"]
    return f"{values} values in a thread's registers (at most {MAX_VALUES})" if values > MAX_VALUES else ""


OVERLAP = False  # whether all kernels of this module start early; set by modules with several kernels


def overlapping():
    """Whether a kernel can start before the previous one has ended: from sm_90 on."""
    return cutlass.cutlass_dsl.BaseDSL._get_dsl().get_arch_enum() >= cutlass.Arch.sm_90


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


LOAD = cute.autovec_copy  # loads a vector to registers


@cute.jit
def fetch(
    gX: cute.Tensor,
    rX: cute.Tensor,
    row: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    unpredicated: cutlass.Constexpr,
):
    """Loads vectors ``start``, ``start + stride``, … of ``row``, the first ``unpredicated`` without predicates."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if i < unpredicated or (column >= 0 if stride < 0 else column < cute.size(gX, mode=[1])):
            LOAD(gX[None, column, row], rX[None, i])


def view(pointer, shape, stride):
    """The memory at ``pointer`` as a tensor with this shape, and strides in elements."""
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))


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


def reduced(x, y, n):
    return ((x - y) * (x - y),)


def finish_totals(total, n, blocks):
    mean = total / n
    return (mean,)


@cute.jit
def launch(
    x: cute.Tensor,
    y: cute.Tensor,
    out: cute.Tensor,
    partials: cute.Tensor,
    stream: cuda.CUstream,
    vec: cutlass.Constexpr = 8,
    threads: cutlass.Constexpr = 512,
    loads: cutlass.Constexpr = 4,
    blocks: cutlass.Constexpr = 264,
):
    n = x.shape[0] * x.shape[1]
    # Shapes are Python ints here: the widest vector that divides ``n`` needs no scalar tail.
    width = math.gcd(n, vec)
    vectors = n // width
    working = min(blocks, (vectors + threads * loads - 1) // (threads * loads))
    gX = view(x.iterator, (width, vectors, 1), (1, width, 0))
    gY = view(y.iterator, (width, vectors, 1), (1, width, 0))
    gOut = view(out.iterator, 1, 0)
    partial_totals((gX, gY), (), partials, reduced, ((plus, plus, 0.0),), (), n, threads, loads, working, stream)
    reduce_partials((), partials, (gOut,), finish_totals, ((plus, 0.0),), (), n, threads, working, 0, stream)

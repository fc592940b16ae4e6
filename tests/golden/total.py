"""tested: total.

out = sum((x - y) · (x - y)) / n

The first kernel's blocks share everything there is to read and leave a partial result each; the second
reduces those. The order of every sum is fixed, so results are the same at every call.
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
    """A partial result for each reduction and block."""
    return [("partials", "f32", (1, config["blocks"]))]


def plus(a, b):
    return a + b


MAX_VALUES = 64  # of a thread, in registers


def why_not(config):
    """The limit that ``config`` is beyond; empty where it is feasible."""
    values = config["vec"] * config["loads"]
    return f"{values} values in a thread's registers, of {MAX_VALUES} at most" if values > MAX_VALUES else ""


def overlapping():
    """Can a kernel start while the one before it ends (PTX ISA 9.7.13.12, griddepcontrol)? From sm_90 on."""
    return cutlass.cutlass_dsl.BaseDSL._get_dsl().get_arch_enum() >= cutlass.Arch.sm_90


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


def inside(start, stride, vectors, mine, sure):
    """1 for each of a thread's values that lies inside, 0 past the end; None where none ever does."""
    vec, loads = mine.shape
    if sure == loads:
        return None
    rInside = cute.make_rmem_tensor(mine, Float32)
    for i in range(loads):
        left = cutlass.max(vectors - (start + i * stride), 0)
        for j in range(vec):
            rInside[j, i] = Float32(cutlass.min(left, 1))
    return rInside.load()


def only(values, real, neutral):
    """``values``, and what changes nothing in their place past the end."""
    if real is None:
        return values
    return cute.where(real > 0.0, values, cute.full_like(values, neutral))


@cute.kernel
def partial_kernel(
    gX: cute.Tensor,
    gY: cute.Tensor,
    partials: cute.Tensor,
    n: cutlass.Constexpr,
    vectors: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    loads: cutlass.Constexpr,
    blocks: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    if cutlass.const_expr(overlapping()):
        cute.arch.griddepcontrol_launch_dependents()
    mine = cute.make_layout((vec, loads))
    share = threads * loads  # vectors that a block reads at once
    steps = (vectors + share * blocks - 1) // (share * blocks)
    sure = loads if vectors % (share * blocks) == 0 else 0  # of the vectors of a step, that every thread has
    smem = cutlass.utils.SmemAllocator()
    warps = cute.make_layout((1, threads // 32))
    buffer0 = smem.allocate_tensor(Float32, warps, 16)
    rX = cute.make_rmem_tensor(mine, gX.element_type)
    rX.fill(0.0)
    rY = cute.make_rmem_tensor(mine, gY.element_type)
    rY.fill(0.0)
    rTotal = cute.make_rmem_tensor(mine, Float32)
    rTotal.fill(0.0)

    for step in cutlass.range(steps, unroll=1):
        start = (step * blocks + bidx) * share + tidx
        fetch(gX, rX, 0, start, threads, sure)
        fetch(gY, rY, 0, start, threads, sure)
        x = rX.load().to(Float32)
        y = rY.load().to(Float32)
        real = inside(start, threads, vectors, mine, sure)
        rTotal.store(rTotal.load() + only((x - y) * (x - y), real, 0.0))
    total = row_reduce(pairwise(values_of(rTotal), plus), buffer0, plus, threads)
    if tidx == 0:
        partials[0, bidx] = total


@cute.kernel
def total_kernel(
    partials: cute.Tensor,
    gOut: cute.Tensor,
    n: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    blocks: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    warps = cute.make_layout((1, threads // 32))
    buffer0 = smem.allocate_tensor(Float32, warps, 16)
    if cutlass.const_expr(overlapping()):
        cute.arch.griddepcontrol_wait()
    total = Float32(0.0)
    for i in cutlass.range(tidx, blocks, threads):
        total = plus(total, partials[0, i])
    total = row_reduce(total, buffer0, plus, threads)
    mean = total / n
    if tidx == 0:
        gOut[0] = cutlass.BFloat16(mean)


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
    # Shapes are Python ints here: the widest vector that divides everything needs no scalar tail.
    width = math.gcd(n, vec)
    vectors = n // width
    working = min(blocks, (vectors + threads * loads - 1) // (threads * loads))
    gX = cute.make_tensor(x.iterator, cute.make_layout((width, vectors, 1), stride=(1, width, 0)))
    gY = cute.make_tensor(y.iterator, cute.make_layout((width, vectors, 1), stride=(1, width, 0)))
    gOut = cute.make_tensor(out.iterator, cute.make_layout(1))
    partial_kernel(gX, gY, partials, n, vectors, width, threads, loads, working).launch(
        grid=[working, 1, 1], block=[threads, 1, 1], stream=stream
    )
    total_kernel(partials, gOut, n, threads, working).launch(
        grid=[1, 1, 1], block=[threads, 1, 1], stream=stream, use_pdl=overlapping()
    )

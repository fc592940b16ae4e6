"""tested: column scan.

out = cumsum(x)

A block walks down its columns in steps; threads scan their rows, slices meet in shared memory, and what came
before is carried along. Every element is read once and every result written once.
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
    "loads": (1, 2, 4, 8, 16),
}


def constraints(config, workload, device):
    """At most 1,024 threads; two steps' partial results in 48 KB; values in registers."""
    threads = config["threads"] * config["slices"]
    fits = threads <= 1024 and 8 * threads * config["vec"] <= 49152
    return fits and config["vec"] * config["loads"] <= 64


def plus(a, b):
    return a + b


@cute.jit
def fetch(
    gX: cute.Tensor,
    rX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    ragged: cutlass.Constexpr,
):
    """Loads a thread's vectors of one step: rows ``start``, ``start + stride``, … of its columns."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if cutlass.const_expr(not ragged):
            cute.autovec_copy(gX[None, column, row], rX[None, i])
        elif row < cute.size(gX, mode=[cute.rank(gX) - 1]):
            cute.autovec_copy(gX[None, column, row], rX[None, i])


@cute.jit
def spread(
    gX: cute.Tensor,
    rX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    ragged: cutlass.Constexpr,
):
    """Loads what has one value for all columns of a vector."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if cutlass.const_expr(not ragged):
            rX[None, i].fill(gX[column, row])
        elif row < cute.size(gX, mode=[cute.rank(gX) - 1]):
            rX[None, i].fill(gX[column, row])


@cute.jit
def put(
    rX: cute.Tensor,
    gX: cute.Tensor,
    column: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    ragged: cutlass.Constexpr,
):
    """Stores what ``fetch`` would load."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        row = start + i * stride
        if cutlass.const_expr(not ragged):
            cute.autovec_copy(rX[None, i], gX[None, column, row])
        elif row < cute.size(gX, mode=[cute.rank(gX) - 1]):
            cute.autovec_copy(rX[None, i], gX[None, column, row])


@cute.jit
def column_scan(
    rX: cute.Tensor,
    parts: cute.Tensor,
    rCarried: cute.Tensor,
    turn: cutlass.Int32,
    op: cutlass.Constexpr,
    slices: cutlass.Constexpr,
):
    """Scans a step in place: ``rX`` (values of a vector, rows) a thread, whose slice follows those before it.

    ``rCarried`` comes before the step, and then before the next. ``parts`` are partial results (values of a vector,
    threads, slices, 2): a warp that is a step ahead writes to the other half.
    """
    tidx, slice_, _ = cute.arch.thread_idx()
    loads = rX.shape[1]
    for i in cutlass.range_constexpr(1, loads):
        rX[None, i].store(op(rX[None, i - 1].load(), rX[None, i].load()))
    cute.autovec_copy(rX[None, loads - 1], parts[None, tidx, slice_, turn])
    cute.arch.sync_threads()
    rStart = cute.make_fragment_like(rCarried)
    rStart.store(rCarried.load())
    for other in cutlass.range_constexpr(slices):
        part = parts[None, tidx, other, turn].load()
        if other < slice_:
            rStart.store(op(rStart.load(), part))
        rCarried.store(op(rCarried.load(), part))
    for i in cutlass.range_constexpr(loads):
        rX[None, i].store(op(rStart.load(), rX[None, i].load()))


@cute.kernel
def scan_kernel(
    gX: cute.Tensor,
    gOut: cute.Tensor,
    n: cutlass.Constexpr,
    columns: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    slices: cutlass.Constexpr,
    loads: cutlass.Constexpr,
):
    tidx, slice_, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    column = bidx * threads + tidx
    # Threads past the last column work on it too, and store nothing: barriers stay uniform.
    source = cutlass.min(column, columns - 1)
    share = slices * loads  # rows of a step
    steps = (n + share - 1) // share
    ragged = n % share != 0
    mine = cute.make_layout((vec, loads))
    smem = cutlass.utils.SmemAllocator()
    parts = cute.make_layout((vec, threads, slices, 2))
    parts_running = smem.allocate_tensor(Float32, parts, 16)
    running = cute.make_rmem_tensor(vec, Float32)  # what came before
    running.fill(0.0)
    rrunning = cute.make_rmem_tensor(mine, Float32)
    rX = cute.make_rmem_tensor(mine, gX.element_type)
    rX.fill(0.0)
    for step in cutlass.range(steps, unroll=1):
        start = (step * slices + slice_) * loads
        fetch(gX, rX, source, start, 1, ragged)
        x = rX.load().to(Float32)
        rrunning.store(x)
        column_scan(rrunning, parts_running, running, step % 2, plus, slices)
        rOut = cute.make_rmem_tensor(mine, gOut.element_type)
        rOut.store((rrunning.load()).to(gOut.element_type))
        if column < columns:
            put(rOut, gOut, column, start, 1, ragged)


@cute.jit
def launch(
    x: cute.Tensor,
    out: cute.Tensor,
    stream: cuda.CUstream,
    vec: cutlass.Constexpr = 4,
    threads: cutlass.Constexpr = 16,
    slices: cutlass.Constexpr = 16,
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
        out.iterator, cute.make_layout((width, (inner // width, outer), n), stride=(1, (width, 0), out.stride[0]))
    )
    scan_kernel(gX, gOut, n, columns, width, threads, slices, loads).launch(
        grid=[(columns + threads - 1) // threads, 1, 1],
        block=[threads, slices, 1],
        stream=stream,
    )

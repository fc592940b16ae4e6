"""tested: elementwise chain.

out = (x · sigmoid(x)) · y

Each thread issues all its loads before it uses the first; accesses are as wide as the shape allows.
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
}


def constraints(config, workload, device):
    return not why_not(config)


def fast_sigmoid(x):
    """Uses the hardware's exponential. A single tanh would be cheaper, but is wrong by 1% at -9 on an H200."""
    return cute.math.rcp(1.0 + cute.math.exp(-x, fastmath=True), approx=True, ftz=True)


MAX_VALUES = 64  # per thread, in registers


def why_not(config):
    """The limit that ``config`` exceeds, as text; "" if it is feasible."""
    values = config["vec"] * config["loads"]
    return f"{values} values in a thread's registers (at most {MAX_VALUES})" if values > MAX_VALUES else ""


EVICT_LAST = 0x14F0000000000000  # the policy of createpolicy.fractional.L2::evict_last with fraction 1


def load_lasting(gX, rX):
    """Loads a vector that L2 keeps longer than data that is written (PTX ISA 9.7.9.8, .L2::cache_hint)."""
    width = rX.element_type.width
    bits = math.gcd(cute.size(rX) * width, 128)
    if bits < 32 or gX.stride != (1,) or gX.iterator.max_alignment * 8 % bits:
        cute.autovec_copy(gX, rX)
        return
    load = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), gX.element_type, num_bits_per_copy=bits)
    parts = (bits // width,)
    cute.copy(load, cute.flat_divide(gX, parts), cute.flat_divide(rX, parts), cache_policy=cutlass.Int64(EVICT_LAST))


OVERLAP = False  # whether all kernels of this module start early; set by modules with several kernels


def overlapping():
    """Whether a kernel can start before the previous one has ended: from sm_90 on."""
    return cutlass.cutlass_dsl.BaseDSL._get_dsl().get_arch_enum() >= cutlass.Arch.sm_90


def start_next_and_wait():
    """Lets the next kernel start, then waits until the previous kernel's writes are visible."""
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()


def nearest(at, count, wraps=False):
    """``at``, clamped to ``count`` positions. If ``wraps``, a negative position first counts from the end, as in
    PyTorch's ``x[index]``."""
    if wraps:
        at = cutlass.select_(at < 0, at + count, at)
    return cutlass.min(cutlass.max(at, 0), count - 1)


def view(pointer, shape, stride):
    """The memory at ``pointer`` as a tensor with this shape, and strides in elements."""
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))


def elementwise(gXs, gTables, gOuts, body, vectors, vec, threads, loads, sizes, bounds, picks, ranges, repeats, stream):
    """Launches one thread per ``loads`` vectors."""
    elementwise_kernel(
        gXs, gTables, gOuts, body, vectors, vec, threads, loads, sizes, bounds, picks, ranges, repeats
    ).launch(
        grid=[(vectors + threads * loads - 1) // (threads * loads), 1, 1],
        block=[threads, 1, 1],
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


@cute.kernel
def elementwise_kernel(
    gXs: tuple,
    gTables: tuple,
    gOuts: tuple,
    body: cutlass.Constexpr,
    vectors: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    loads: cutlass.Constexpr,
    sizes: cutlass.Constexpr,
    bounds: cutlass.Constexpr,
    picks: cutlass.Constexpr,
    ranges: cutlass.Constexpr,
    repeats: cutlass.Constexpr,
):
    """``body`` maps fp32 vectors of the inputs to vectors of the outputs, or to one number for a whole vector.

    ``body`` also takes elements that ``picks`` gather from tables, indices along dimensions (``ranges``), and
    ``sizes``. ``bounds``: extents of inputs smaller than the space. ``repeats``: dimensions that an output lacks.
    """
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    first_vec = bidx * threads * loads + tidx
    rXs = [cute.make_rmem_tensor((cute.size(gX, mode=[0]), loads), gX.element_type) for gX in gXs]
    for rX in rXs:
        rX.fill(0.0)
    for i in cutlass.range_constexpr(loads):
        at = first_vec + i * threads
        if at < vectors:
            if cutlass.const_expr(len(bounds) > 0):
                load_parts(gXs, rXs, i, at, bounds)
            else:
                for gX, rX in zip(gXs, rXs):
                    load_vector(gX, rX, i, at)
    values = [rX.load().to(Float32) for rX in rXs]
    if cutlass.const_expr(len(picks) > 0):
        values += picked(gTables, rXs, picks, first_vec, threads, vectors)
    if cutlass.const_expr(len(ranges) > 0):
        values += [places(first_vec, threads, each, n, (vec if wide else 1, loads)) for each, n, wide in ranges]
    if cutlass.const_expr(len(sizes) > 0):
        values += sizes
    rOuts = [cute.make_rmem_tensor((cute.size(gOut, mode=[0]), loads), gOut.element_type) for gOut in gOuts]
    results = body(*values)
    for rOut, result in zip(rOuts, results):
        if cutlass.const_expr(isinstance(result, cute.TensorSSA)):
            rOut.store(result.broadcast_to(rOut.shape).to(rOut.element_type))
        else:
            rOut.fill(result)
    for i in cutlass.range_constexpr(loads):
        at = first_vec + i * threads
        if cutlass.const_expr(len(repeats) > 0):
            store_firsts(rOuts, gOuts, i, at, vectors, repeats)
        elif at < vectors:
            for rOut, gOut in zip(rOuts, gOuts):
                cute.autovec_copy(rOut[None, i], gOut[None, at])


def load_vector(gX, rX, i, at):
    if gX.stride[0] == 0:
        rX[0, i] = gX[0, at]
    else:
        load_lasting(gX[None, at], rX[None, i])


@cute.jit
def load_parts(gXs: tuple, rXs: tuple, i: cutlass.Constexpr, at: cutlass.Int32, bounds: cutlass.Constexpr):
    """Loads vector ``at`` of the space from the tensors that contain it. ``bounds``, per tensor and dimension: how
    ``place`` finds the coordinate, the tensor's begin and end, and the number of vectors before it."""
    for gX, rX, bound in zip(gXs, rXs, bounds):
        if inside(at, bound):
            load_vector(gX, rX, i, at - vectors_before(bound))


def vectors_before(bound):
    """Number of vectors of the iteration space before the tensor's first vector."""
    count = 0
    for _, _, _, before in bound:
        count = count + before
    return count


def inside(at, bound):
    found = True
    for dim, begin, end, _ in bound:
        found = found & (begin <= place(at, dim)) & (place(at, dim) < end)
    return found


def place(at, dim):
    """Coordinate along dimension ``dim`` of vector ``at`` of the iteration space, in elements."""
    divisors, count, step = dim
    for divisor in divisors:
        at = at // divisor
    return at % count * step if step > 1 else at % count


@cute.jit
def picked(
    gTables: tuple,
    rXs: tuple,
    picks: cutlass.Constexpr,
    first_vec: cutlass.Int32,
    threads: cutlass.Constexpr,
    vectors: cutlass.Constexpr,
):
    """Gathers from tables. Each of ``picks`` has the index of its table in ``gTables`` (values of a vector, choices,
    vectors), the index in ``rXs`` of the positions (one per value, or one for a whole vector), and whether negative
    positions count from the end. Returns fp32 vectors."""
    values = []
    for table, names, wraps in picks:
        gTable, rName = gTables[table], rXs[names]
        each, loads = rName.shape
        count = cute.size(gTable, mode=[1])
        rPick = cute.make_rmem_tensor((max(each, cute.size(gTable, mode=[0])), loads), gTable.element_type)
        rPick.fill(0.0)
        for i in cutlass.range_constexpr(loads):
            at = first_vec + i * threads
            if at < vectors:
                if cutlass.const_expr(each > 1):
                    for j in cutlass.range_constexpr(each):
                        rPick[j, i] = gTable[j, nearest(rName[j, i], count, wraps), at]
                else:
                    cute.autovec_copy(gTable[None, nearest(rName[0, i], count, wraps), at], rPick[None, i])
        values.append(rPick.load().to(Float32))
    return values


def places(first_vec, stride, each, count, shape):
    """Indices of a thread's values along a dimension of ``count`` vectors, each repeated ``each`` times."""
    rPlace = cute.make_rmem_tensor(shape, Float32)
    vec, loads = shape
    for i in range(loads):
        at = (first_vec + i * stride) // each % count * vec
        for j in range(vec):
            rPlace[j, i] = Float32(at + j)
    return rPlace.load()


@cute.jit
def store_firsts(
    rOuts: tuple,
    gOuts: tuple,
    i: cutlass.Constexpr,
    at: cutlass.Int32,
    vectors: cutlass.Constexpr,
    repeats: cutlass.Constexpr,
):
    """Stores vector ``at`` of the space. An output that lacks dimensions is stored only where their index is 0."""
    for rOut, gOut, lacking in zip(rOuts, gOuts, repeats):
        if (at < vectors) & inside(at, [(dim, 0, 1, 0) for dim in lacking]):
            cute.autovec_copy(rOut[None, i], gOut[None, at])


def body(x, y):
    return (x * fast_sigmoid(x) * y,)


@cute.jit
def launch(
    x: cute.Tensor,
    y: cute.Tensor,
    out: cute.Tensor,
    stream: cuda.CUstream,
    vec: cutlass.Constexpr = 8,
    threads: cutlass.Constexpr = 128,
    loads: cutlass.Constexpr = 1,
):
    n = x.shape[0] * x.shape[1]
    rows = 1
    # Shapes are Python ints here: the widest vector that fits every row needs no scalar tail.
    width = math.gcd(n, vec)
    vectors = n // width * rows
    gX = view(x.iterator, (width, (n // width, rows)), (1, (width, 0)))
    gY = view(y.iterator, (width, (n // width, rows)), (1, (width, 0)))
    gOut = view(out.iterator, (width, (n // width, rows)), (1, (width, 0)))
    elementwise((gX, gY), (), (gOut,), body, vectors, width, threads, loads, (), (), (), (), (), stream)

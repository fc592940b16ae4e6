"""A kernel for elementwise chains with broadcasting: every output element follows from one element of each input.

The iteration space is walked in vectors along its last dimension (or along everything, where nothing is broadcast).
Each thread takes ``loads`` vectors a block's width apart and issues all its loads before it uses the first.

Inputs and outputs are (values of a vector, vectors); what has one value for a whole vector is (1, vectors), with stride
0. Where a vector lies along a dimension of the space is told by ``(divisors, count, step)``: its number is divided by
each of ``divisors``, the remainder by ``count`` is what counts, in steps of so many values.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.lasting_loads import load_lasting
from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait
from cutegen_lab.templates.kernels.device.positions import nearest
from cutegen_lab.templates.kernels.device.views import view  # noqa: F401 - for launch


def elementwise(gXs, gTables, gOuts, body, vectors, vec, threads, loads, sizes, bounds, picks, ranges, repeats, stream):
    """Launches threads for all vectors, ``loads`` for each."""
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
    """``body`` maps vectors in fp32 of the inputs to those of the outputs; one value will do for a whole vector.

    It also takes what ``picks`` choose from tables, places along dimensions (``ranges``), and ``sizes``. ``bounds`` are
    of inputs that end before the space does, ``repeats`` of outputs that lack some of its dimensions.
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
    """Loads vector ``at`` of the space where it lies inside of tensors. ``bounds`` say for each and for dimensions of
    the space how vectors lie along it, where the tensor begins and ends, and how many vectors come before it."""
    for gX, rX, bound in zip(gXs, rXs, bounds):
        if inside(at, bound):
            load_vector(gX, rX, i, at - vectors_before(bound))


def vectors_before(bound):
    """How many vectors of the space come before a tensor."""
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
    """Where vector ``at`` of the space lies along a dimension."""
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
    """Vectors of what ``picks`` name: from which of ``gTables`` (values of a vector, choices, vectors), which of
    ``rXs`` has the numbers of the choices, one for each value or for all of a vector, and whether negative ones count
    from the end."""
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
    """Where each of a thread's values is along a dimension of ``count`` vectors, the next every ``each`` vectors."""
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
    """Stores vector ``at`` of the space: of those that differ in dimensions that an output lacks, the first."""
    for rOut, gOut, lacking in zip(rOuts, gOuts, repeats):
        if (at < vectors) & inside(at, [(dim, 0, 1, 0) for dim in lacking]):
            cute.autovec_copy(rOut[None, i], gOut[None, at])

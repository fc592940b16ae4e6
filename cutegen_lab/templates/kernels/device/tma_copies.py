"""Copies, unchanged or converted, of operands that TMA or wgmma cannot address in place."""

import math

import cutlass
import cutlass.cute as cute

from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait


def converted(mX, scratch, mScale, convert, stream):
    """Copies ``mX`` (rows, k, batch) to ``scratch`` in a layout that TMA can address. With :func:`copy_row`, one copy;
    with ``halve_row``, both halves, and their scales in ``mScale``.

    ``scratch`` is (1 or 2 copies, batches, :func:`scratch_size`). A copy has the layout of ``mX`` (8 bits: always
    contiguous along k), but its rows or columns begin at multiples of 128 bytes, L2's line.
    """
    rows, k = cute.size(mX, mode=[0]), cute.size(mX, mode=[1])
    copies, batches, room = scratch.shape
    along_k = mX.stride[1] == 1 or mX.stride[0] != 1
    k_major = along_k or scratch.element_type.width == 8
    outer, pitch = (rows, even_pitch(k)) if k_major else (k, even_pitch(rows))
    stride = (pitch, 1, outer * pitch) if k_major else (1, pitch, outer * pitch)
    mCopies = tuple(
        cute.make_tensor(scratch.iterator + part * batches * room, cute.make_layout((rows, k, batches), stride=stride))
        for part in range(copies)
    )
    steps = [step for step in mX.stride if step != 1]
    even = along_k and k % 4 == 0 and all(isinstance(step, int) and step % 4 == 0 for step in steps)
    vec = math.gcd(16, k) if mX.element_type.width == 8 else 4 if even else 1
    if along_k:
        walkers = next((w for w in (8, 16, 32, 64, 128) if w * vec * 4 >= k), 256)
        block_rows = 256 // walkers
    else:  # neighbouring threads take neighbouring rows, few enough per block that every SM has work
        block_rows = next((r for r in (32, 16) if rows * batches >= 132 * r), 8)
        walkers = 1024 // block_rows
    unroll = next(count for count in (8, 4, 2, 1) if k // vec >= count * walkers or count == 1)  # loads in flight
    convert_kernel(mX, mCopies, mScale, convert, (rows, k, batches), along_k, vec, walkers, block_rows, unroll).launch(
        grid=[cute.ceil_div(rows, block_rows) * batches, 1, 1],
        block=[walkers * block_rows, 1, 1],
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )
    return mCopies


def copied_row_by_row(mX, scratch, stream):
    """``mX`` (rows, k, batch), copied unchanged to ``scratch`` in a layout that TMA can address."""
    return converted(mX, scratch, None, copy_row, stream)[0]


def even_pitch(length):
    """Stride in elements of rows of ``length`` 16-bit numbers that begin at multiples of 128 bytes."""
    return (length + 63) // 64 * 64


def scratch_size(rows, k):
    """Upper bound of the number of elements of one batch of a copy, in either layout."""
    return max(rows * even_pitch(k), k * even_pitch(rows))


def uneven(x, matrix):
    """Whether TMA cannot address the 16-bit matrices of ``x`` along dimensions ``matrix``. TMA takes contiguous rows
    or columns that begin at multiples of 16 bytes."""
    dense = any(x.shape[d] > 1 and x.stride[d] == 1 for d in matrix)
    return not dense or any(step % 8 for size, step in zip(x.shape, x.stride) if size > 1 and step > 1)


@cute.kernel
def convert_kernel(
    mX: cute.Tensor,
    mCopies: tuple,
    mScale: cute.Tensor,
    convert: cutlass.Constexpr,
    shape: cutlass.Constexpr,
    along_k: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    walkers: cutlass.Constexpr,
    block_rows: cutlass.Constexpr,
    unroll: cutlass.Constexpr,
):
    """A block converts ``block_rows`` rows of ``mX`` (rows, k, batch), each by ``walkers`` threads. ``convert`` writes
    a row of ``mCopies``. Neighbouring threads read neighbours in memory (``along_k``: in k)."""
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    rows, k, _ = shape
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    groups = cute.ceil_div(rows, block_rows)
    at, walker = (tidx // walkers, tidx % walkers) if along_k else (tidx % block_rows, tidx // block_rows)
    row, batch = bidx % groups * block_rows + at, bidx // groups
    inside = cutlass.min(row, rows - 1)
    vectors = k // vec if row < rows else 0
    gX, gCopies = flat_row(mX, inside, batch, vec), [flat_row(x, inside, batch, vec) for x in mCopies]
    apart = 1 if along_k else block_rows  # distance between neighbouring threads of a row, in thread indices
    convert(gX, gCopies, mScale, row, batch, vectors, walker, shape, walkers * block_rows, walkers, apart, unroll)


def flat_row(x, row, batch, vec):
    return cute.flat_divide(x[row, None, batch], (vec,))


@cute.jit
def copy_row(
    gX: cute.Tensor,
    gCopies: tuple,
    mScale: cute.Tensor,
    row: cutlass.Int32,
    batch: cutlass.Int32,
    vectors: cutlass.Int32,
    walker: cutlass.Int32,
    shape: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    walkers: cutlass.Constexpr,
    apart: cutlass.Constexpr,
    unroll: cutlass.Constexpr,
):
    """Copies ``gX`` (vec, vectors of a row). Each of the row's threads takes every ``walkers``-th vector."""
    gCopy = gCopies[0]
    rX, rCopy = (cute.make_rmem_tensor(cute.size(gX, mode=[0]), x.element_type) for x in (gX, gCopy))
    for step in cutlass.range(walker, vectors, walkers, unroll=unroll):
        cute.autovec_copy(gX[None, step], rX)
        rCopy.store(rX.load().to(gCopy.element_type))
        cute.autovec_copy(rCopy, gCopy[None, step])

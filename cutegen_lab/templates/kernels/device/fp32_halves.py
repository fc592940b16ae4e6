"""Split fp32: products of fp32 operands on the tensor cores, by two fp16 halves of each operand.

An fp32 number x, times a power of two s, is written as ``high + low / 2**11``, with fp16 halves. Each row of the left
operand and each column of the right operand has its own s, chosen so that its largest number is in [2**13, 2**15) and
nothing overflows. Of a product's four terms, three are summed: high·high in one accumulator, high·low and low·high in
another. low·low is omitted: it is about as small as fp32's rounding errors (Ootomo and Yokota, "Recovering single
precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", 2022, §3). wgmma truncates
its sums. The sum of high·high is therefore added to a total after each step along k, with rounding to nearest (§3.2
there).

Why fp16: wgmma multiplies it at twice the rate of TF32, and in either layout of an operand. Three bf16 parts would need
six products. The price is the power of two, which a kernel must find before it writes the halves.

If halves may lose more than sums in fp32 would, a result is *doubtful* and is recomputed from the fp32 operands:

- A number is *held* by its halves if it is at least 2**-13 after scaling. Its relative error is at most 2**-23, so a
  product of held numbers loses low·low and at most 2**-22 of |a|·|b|. The error of any other number is at most
  2**-36 after scaling, whatever its size. ``lost`` such numbers in a row of one operand change a scaled result by at
  most lost · 2**-36 · 2**15, since the numbers of the other operand are below 2**15. If the scaled result is at least
  2 · (lost of its row + lost of its column), this error is at most 2**-22 of the result, and therefore of the sum of
  |a|·|b|, which is never smaller than the result. Any other result is doubtful. So are all results of a row of
  which more than a quarter of the nonzero numbers are lost: only few of its terms count, see the next point.
- fp32 sums round once per term. If few terms count, this error is smaller than that of the halves; it is zero if one
  operand is one-hot. A row with x held numbers and a column with y share about x · y / k terms. Results are doubtful if
  this is below min(40, k / 4); above it, both errors are about the same.
- A result is doubtful if it, or an operand, is not finite.

Normally distributed, uniform and constant numbers are therefore multiplied as halves: of normally distributed numbers,
one in 2**24 is not held, and then only results whose terms almost cancel are doubtful. The factors that undo the
scaling are stored as square roots, so that neither of a result's two multiplications can overflow or underflow alone.
"""

import math

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
from cutlass import Float32

from cutegen_lab.templates.kernels.device.fp32_recompute import by_thread, places, recomputed


@cute.jit
def halve_row(
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
    """Writes both halves of each number of ``gX`` (vec, vectors of a row), times a power of two, to ``gCopies``, and
    the row's numbers from :func:`scale_of` to ``mScale`` (4, rows, batch)."""
    gHigh, gLow = gCopies
    tidx, vec = cute.arch.thread_idx()[0], cute.size(gX, mode=[0])
    rX, rHigh, rLow = (cute.make_rmem_tensor(vec, x.element_type) for x in (gX, gHigh, gLow))
    rSize = cute.make_rmem_tensor(vec, Float32)
    bits = cute.recast_tensor(rX, cutlass.Int32)
    sFold = utils.SmemAllocator().allocate_tensor(
        cutlass.Int32, cute.make_layout((threads, 3), stride=(1, threads)), 16
    )
    largest = cutlass.Int32(0)  # bits of absolute values, which sort as the numbers do
    for step in cutlass.range(walker, vectors, walkers, unroll=unroll):
        cute.autovec_copy(gX[None, step], rX)
        for e in cutlass.range_constexpr(vec):
            largest = cutlass.max(largest, bits[e] & 0x7FFFFFFF)
    sFold[tidx, 0] = largest
    fold(sFold, (0,), tidx, walker, walkers, apart, cutlass.max)
    largest = sFold[tidx - walker * apart, 0]
    power = cutlass.min(141 - (largest >> 23), 126) & -2  # even, and at most fp32's largest exponent
    scale = power_of_two(power)
    held, some = cutlass.Int32(0), cutlass.Int32(0)  # numbers held by their halves, numbers other than 0
    for step in cutlass.range(walker, vectors, walkers, unroll=unroll):
        cute.autovec_copy(gX[None, step], rX)
        scaled = rX.load() * scale
        high = scaled.to(gHigh.element_type)
        rHigh.store(high)
        rLow.store(((scaled - high.to(Float32)) * 2048.0).to(gLow.element_type))
        cute.autovec_copy(rHigh, gHigh[None, step])
        cute.autovec_copy(rLow, gLow[None, step])
        rSize.store(cute.math.abs(scaled))
        for e in cutlass.range_constexpr(vec):
            held = held + cutlass.Int32(rSize[e] >= 0.0001220703125)  # 2**-13
            some = some + cutlass.Int32(rX[e] != 0.0)
    sFold[tidx, 1], sFold[tidx, 2] = held, some
    fold(sFold, (1, 2), tidx, walker, walkers, apart, lambda x, y: x + y)
    if walker == 0 and row < shape[0]:
        rScale = cute.make_rmem_tensor(4, Float32)
        rScale.store(scale_of(power, largest, sFold[tidx, 1], sFold[tidx, 2], shape[1]))
        cute.autovec_copy(rScale, mScale[None, row, batch])


@cute.jit
def fold(
    sFold: cute.Tensor,
    columns: cutlass.Constexpr,
    tidx: cutlass.Int32,
    walker: cutlass.Int32,
    walkers: cutlass.Constexpr,
    apart: cutlass.Constexpr,
    op: cutlass.Constexpr,
):
    """Reduces ``columns`` of ``sFold`` (threads, 3) over a row's threads. The first of them gets the result."""
    cute.arch.sync_threads()
    for turn in cutlass.range_constexpr(walkers.bit_length() - 1):
        half = walkers >> (turn + 1)
        if walker < half:
            for c in columns:
                sFold[tidx, c] = op(sFold[tidx, c], sFold[tidx + half * apart, c])
        cute.arch.sync_threads()


@cute.jit
def power_of_two(power: cutlass.Int32):
    bits = cute.make_rmem_tensor(1, cutlass.Int32)
    bits[0] = (power + 127) << 23
    return cute.recast_tensor(bits, Float32)[0]


@cute.jit
def scale_of(
    power: cutlass.Int32, largest: cutlass.Int32, held: cutlass.Int32, some: cutlass.Int32, k: cutlass.Constexpr
):
    """Four numbers for a row with ``some`` nonzero numbers, ``held`` of them held by their halves. [0]: square root of
    the factor that undoes the scaling. [1]: the smallest scaled result that is not doubtful is the sum of the row's and
    the column's number. [2]: enough terms count if the product of both numbers is at least 1. [3]: unused."""
    rScale = cute.make_rmem_tensor(4, Float32)
    rScale[0] = power_of_two(-(power >> 1))
    rScale[1] = 2.0 * Float32(some - held)
    rScale[2] = Float32(held) * (1.0 / math.sqrt(min(40, k / 4) * k))
    rScale[3] = 0.0
    if (some - held) * 4 > some:  # the range is wide: only few numbers count
        rScale[2] = 2.0**-50
    if some == 0:  # a row of zeros: its results are exactly 0
        rScale[1] = -(2.0**126)
        rScale[2] = 2.0**100
    if largest >= 0x7F800000:
        rScale[2] = 0.0
    return rScale.load()


@cute.jit
def bring_scale(mScale: cute.Tensor, at: cutlass.Int32, r: cute.Tensor, rows: cutlass.Constexpr):
    """Loads the numbers of :func:`scale_of` for a row to ``r``. A row past the edge counts as a row of zeros."""
    cute.autovec_copy(mScale[None, cutlass.min(at, rows - 1)], r)
    r[1] = -(2.0**126) if at >= rows else r[1]
    r[2] = 2.0**100 if at >= rows else r[2]


@cute.jit
def restored(
    high: cute.TensorSSA,
    low: cute.TensorSSA,
    operands: tuple,
    cC: cute.Tensor,
    row: cutlass.Int32,
    column: cutlass.Int32,
    batch: cutlass.Int32,
    first: cutlass.Int32,
    last: cutlass.Int32,
    shape_mn: cutlass.Constexpr,
):
    """A thread's products of fp32 operands over k from ``first`` to ``last``: from the sums of high·high and of the
    mixed terms, or recomputed if doubtful. ``operands``: the fp32 tensors, then their scales (see :func:`scale_of`)."""
    mA, mB, scale_a, scale_b = operands
    columns = cute.size(cC) // 2
    root, least, terms = (cute.make_rmem_tensor((columns, 2), Float32) for _ in range(3))
    rRow, rColumns = cute.make_rmem_tensor(4, Float32), cute.make_rmem_tensor((4, columns), Float32)
    rows_at, columns_at = places(cC)
    for c in cutlass.range_constexpr(columns):
        bring_scale(scale_b[None, None, batch], column + columns_at[c], rColumns[None, c], shape_mn[1])
    for r in cutlass.range_constexpr(2):
        bring_scale(scale_a[None, None, batch], row + rows_at[r], rRow, shape_mn[0])
        root[None, r].store(rColumns[0, None].load() * rRow[0])
        least[None, r].store(rColumns[1, None].load() + rRow[1])
        terms[None, r].store(rColumns[2, None].load() * rRow[2])
    root, least, terms = (by_thread(x).load().reshape(high.shape) for x in (root, least, terms))
    sums = high + low * 0.00048828125
    result = sums * root * root
    doubtful = cute.full_like(result, float("nan"))
    doubt = cute.where(cute.math.abs(sums) >= least, result * 0.0, doubtful)
    doubt = cute.where(terms >= 1.0, doubt, doubtful)
    return recomputed(result, doubt, mA, mB, cC, row, column, batch, first, last, shape_mn)

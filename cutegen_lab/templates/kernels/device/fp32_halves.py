"""The text that takes fp32 operands to the tensor cores, and those of 16 and 8 bits that TMA or wgmma cannot address.

An fp32 number x, times a power of two s for its row (of the left operand; of the right one, its column), is
``high + low / 2**11`` with both halves fp16: s brings the row's largest number to [2**13, 2**15), so nothing overflows.
Of a product's four terms, three are summed: high·high, and in an accumulator of their own high·low and low·high;
low·low is about fp32's rounding (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while
surpassing the FP32 theoretical peak performance", 2022, §3). A wgmma truncates its sums, so after each step along k its
sum of high·high is added to a total by an ordinary rounded addition (§3.2 there).

Why fp16: wgmma multiplies it at twice tf32's rate, and from either layout of an operand; three bf16 parts would need
six products. The price is the power of two, which this kernel finds before it writes the halves.

Where halves lose more than fp32's own sums would, a result is computed again from the operands themselves:

- A number *held* by its halves, one of at least 2**-13 after scaling, loses at most 2**-23 of itself, so a product of
  held numbers at most 2**-22, and low·low, of |a|·|b|. Any other loses at most 2**-36 after scaling, whatever its size:
  ``lost`` such numbers in a row of one operand change a scaled result by no more than lost · 2**-36 · 2**15, since its
  partner's numbers are below 2**15. Where the scaled result is at least 2 · (lost of its row + lost of its column),
  that is 2**-22 of it at most, and of |a|·|b|, which is no smaller. Any other result is doubtful, as is every one of a
  row with more than a quarter of its numbers lost: few of them count, see next.
- fp32's sums round once a term. Where few terms count, that is less than what halves lose, nothing at all where one
  operand is one-hot. A row and a column with x and y numbers held share about x · y / k terms; results are doubtful
  where that is below min(40, k / 4), from where on both errors are about the same.
- What is not finite, in an operand or in a result.

So normal, uniform and constant numbers go by halves; one number in 2**24 of normal ones is not held, and then only
results that all but cancel are doubtful. The factors that undo the scaling are kept as their square roots, so that none
of a result's two multiplications overflows or underflows alone.
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
    """Both halves of each number of ``gX`` (vec, vectors of a row) times a power of two, and in ``mScale`` (4, rows,
    batch) what :func:`scale_of` says of the row."""
    gHigh, gLow = gCopies
    tidx, vec = cute.arch.thread_idx()[0], cute.size(gX, mode=[0])
    rX, rHigh, rLow = (cute.make_rmem_tensor(vec, x.element_type) for x in (gX, gHigh, gLow))
    rSize = cute.make_rmem_tensor(vec, Float32)
    bits = cute.recast_tensor(rX, cutlass.Int32)
    sFold = utils.SmemAllocator().allocate_tensor(
        cutlass.Int32, cute.make_layout((threads, 3), stride=(1, threads)), 16
    )
    largest = cutlass.Int32(0)  # of the bits without their sign, which order as the numbers do
    for step in cutlass.range(walker, vectors, walkers, unroll=unroll):
        cute.autovec_copy(gX[None, step], rX)
        for e in cutlass.range_constexpr(vec):
            largest = cutlass.max(largest, bits[e] & 0x7FFFFFFF)
    sFold[tidx, 0] = largest
    fold(sFold, (0,), tidx, walker, walkers, apart, cutlass.max)
    largest = sFold[tidx - walker * apart, 0]
    power = cutlass.min(141 - (largest >> 23), 126) & -2  # even, and no more than fp32 has
    scale = power_of_two(power)
    held, some = cutlass.Int32(0), cutlass.Int32(0)  # numbers that the halves hold, and all that are not 0
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
    """What a row's walkers found, in the place of its first."""
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
    """Of a row of ``some`` numbers other than 0, ``held`` of them held by their halves: the square root of what undoes
    its scaling; the scaled results that are sure, from where on: as much as row and column ask for together; and how
    many terms count, so that a row's times a column's is 1 where they are enough."""
    rScale = cute.make_rmem_tensor(4, Float32)
    rScale[0] = power_of_two(-(power >> 1))
    rScale[1] = 2.0 * Float32(some - held)
    rScale[2] = Float32(held) * (1.0 / math.sqrt(min(40, k / 4) * k))
    rScale[3] = 0.0
    if (some - held) * 4 > some:  # few numbers of a wide range count
        rScale[2] = 2.0**-50
    if some == 0:  # every result is 0, whatever its partner
        rScale[1] = -(2.0**126)
        rScale[2] = 2.0**100
    if largest >= 0x7F800000:
        rScale[2] = 0.0
    return rScale.load()


@cute.jit
def bring_scale(mScale: cute.Tensor, at: cutlass.Int32, r: cute.Tensor, rows: cutlass.Constexpr):
    """What :func:`scale_of` says of a row; of one past the edge, that its results are all 0."""
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
    """A thread's products of fp32 operands (themselves, then what :func:`scale_of` says of their rows), from the sums
    of high·high and of the halves' other products, over k from ``first`` to ``last``."""
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

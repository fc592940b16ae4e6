"""The text that takes fp32 operands to the tensor cores, and those of 16 and 8 bits that TMA or wgmma cannot address.

An fp32 number x, times a power of two s for its row (of the left operand; of the right one, its column), is
``high + low / 2**11`` with both halves fp16: s brings the row's largest number to [2**14, 2**15), so nothing overflows,
and a number needs to be 2**26 smaller than that to lose any of the 22 bits that two halves hold. Of a product's four
terms, three are summed: high·high, and in an accumulator of their own high·low and low·high; low·low is below fp32's
rounding (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
theoretical peak performance", 2022, §3). A wgmma truncates its sums, so after each step along k its sum of high·high is
added to a total by an ordinary rounded addition (§3.2 there).

Why fp16: wgmma multiplies it at twice tf32's rate, and from either layout of an operand; three bf16 parts would need
six products. The price is the power of two, which this kernel finds before it writes the halves.
"""

KERNEL = '''
@cute.kernel
def convert_kernel(
    mX: cute.Tensor,
    mHigh: cute.Tensor,
    mLow: cute.Tensor,
    mScale: cute.Tensor,
    shape: cutlass.Constexpr,
    along_k: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    walkers: cutlass.Constexpr,
    block_rows: cutlass.Constexpr,
    unroll: cutlass.Constexpr,
):
    """``block_rows`` rows of ``mX`` (rows, k, batch) a block, ``walkers`` threads on each: a copy of them in ``mHigh``,
    or, with ``mLow``, both halves of each number times a power of two, and one over that (NaN: the row is not all
    finite) in ``mScale``. Threads next to each other read neighbours in memory (``along_k``: in k)."""
    rows, k, _ = shape
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    groups = cute.ceil_div(rows, block_rows)
    at, walker = (tidx // walkers, tidx % walkers) if along_k else (tidx % block_rows, tidx // block_rows)
    row, batch = bidx % groups * block_rows + at, bidx // groups
    inside = cutlass.min(row, rows - 1)
    vectors = k // vec if row < rows else 0
    gX, gHigh = (cute.flat_divide(x[inside, None, batch], (vec,)) for x in (mX, mHigh))
    rX = cute.make_rmem_tensor(vec, mX.element_type)
    rHigh = cute.make_rmem_tensor(vec, mHigh.element_type)
    if cutlass.const_expr(mLow is None):
        for step in cutlass.range(walker, vectors, walkers, unroll=unroll):
            cute.autovec_copy(gX[None, step], rX)
            rHigh.store(rX.load().to(mHigh.element_type))
            cute.autovec_copy(rHigh, gHigh[None, step])
    else:
        gLow = cute.flat_divide(mLow[inside, None, batch], (vec,))
        rLow = cute.make_rmem_tensor(vec, mLow.element_type)
        bits = cute.recast_tensor(rX, cutlass.Int32)
        largest = cutlass.Int32(0)  # of the bits without their sign, which order as the numbers do
        for step in cutlass.range(walker, vectors, walkers, unroll=unroll):
            cute.autovec_copy(gX[None, step], rX)
            for e in cutlass.range_constexpr(vec):
                largest = cutlass.max(largest, bits[e] & 0x7FFFFFFF)
        sLargest = utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout(walkers * block_rows), 16)
        sLargest[tidx] = largest
        cute.arch.sync_threads()
        apart = 1 if along_k else block_rows
        for fold in cutlass.range_constexpr(walkers.bit_length() - 1):
            half = walkers >> (fold + 1)
            if walker < half:
                sLargest[tidx] = cutlass.max(sLargest[tidx], sLargest[tidx + half * apart])
            cute.arch.sync_threads()
        largest = sLargest[tidx - walker * apart]
        exponent = cutlass.max(largest >> 23, 15)  # rows so small that 2**126 is not enough stay smaller
        factor = cute.make_rmem_tensor(2, cutlass.Int32)
        factor[0] = (268 - exponent) << 23
        factor[1] = 0x7FC00000 if exponent == 255 else (exponent - 14) << 23
        factors = cute.recast_tensor(factor, Float32)
        scale = factors[0]
        if walker == 0 and row < rows:
            mScale[row, batch] = factors[1]
        for step in cutlass.range(walker, vectors, walkers, unroll=unroll):
            cute.autovec_copy(gX[None, step], rX)
            scaled = rX.load() * scale
            high = scaled.to(mHigh.element_type)
            rHigh.store(high)
            rLow.store(((scaled - high.to(Float32)) * 2048.0).to(mLow.element_type))
            cute.autovec_copy(rHigh, gHigh[None, step])
            cute.autovec_copy(rLow, gLow[None, step])


def converted(mX, scratch, mScale, stream):
    """``mX`` (rows, k, batch) in ``scratch`` as TMA can address it: its halves and their scales, or one copy.

    ``scratch`` is (1 or 2 copies, batches, :func:`scratch_size`); a copy lies as ``mX`` does (of 8 bits: densely along
    k), but its rows or columns begin at L2's lines.
    """
    rows, k = cute.size(mX, mode=[0]), cute.size(mX, mode=[1])
    copies, batches, room = scratch.shape
    along_k = mX.stride[1] == 1 or mX.stride[0] != 1
    k_major = along_k or scratch.element_type.width == 8
    outer, pitch = (rows, even_pitch(k)) if k_major else (k, even_pitch(rows))
    stride = (pitch, 1, outer * pitch) if k_major else (1, pitch, outer * pitch)
    parts = [
        cute.make_tensor(
            scratch.iterator + part * batches * room, cute.make_layout((rows, k, batches), stride=stride)
        )
        for part in range(copies)
    ]
    steps = [step for step in mX.stride if step != 1]
    even = along_k and k % 4 == 0 and all(isinstance(step, int) and step % 4 == 0 for step in steps)
    vec = math.gcd(16, k) if mX.element_type.width == 8 else 4 if even else 1
    if along_k:
        walkers = next((w for w in (8, 16, 32, 64, 128) if w * vec * 4 >= k), 256)
        block_rows = 256 // walkers
    else:  # neighbours are rows: as many as leave work for every multiprocessor
        block_rows = next((r for r in (32, 16) if rows * batches >= 132 * r), 8)
        walkers = 1024 // block_rows
    unroll = next(count for count in (8, 4, 2, 1) if k // vec >= count * walkers or count == 1)  # loads in flight
    convert_kernel(
        mX, parts[0], parts[1] if copies > 1 else None, mScale, (rows, k, batches), along_k, vec, walkers, block_rows,
        unroll,
    ).launch(
        grid=[cute.ceil_div(rows, block_rows) * batches, 1, 1], block=[walkers * block_rows, 1, 1], stream=stream
    )
    return tuple(parts)


def even_pitch(length):
    """The next multiple of 128 bytes, of 16-bit numbers."""
    return (length + 63) // 64 * 64


def scratch_size(rows, k):
    """Elements that one batch of a copy takes at most, in either layout."""
    return max(rows * even_pitch(k), k * even_pitch(rows))
'''

RESTORED = '''
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
    """A thread's products of fp32 operands (themselves, then what their rows' halves are to be multiplied by), from the
    sums of high·high and of the halves' other products, over k from ``first`` to ``last``."""
    mA, mB, scale_a, scale_b = operands
    a = fetch(scale_a, cC, row, column, batch, shape_mn, False)
    b = fetch(scale_b, cC, row, column, batch, shape_mn, True)
    # The smaller first: two large factors overflow only if the result does.
    result = (high + low * 0.00048828125) * cute.where(a < b, a, b) * cute.where(a < b, b, a)
    return recomputed(result, mA, mB, cC, row, column, batch, first, last, shape_mn)
'''

RECOMPUTED = '''
@cute.jit
def recomputed(
    result: cute.TensorSSA,
    mA: cute.Tensor,
    mB: cute.Tensor,
    cC: cute.Tensor,
    row: cutlass.Int32,
    column: cutlass.Int32,
    batch: cutlass.Int32,
    first: cutlass.Int32,
    last: cutlass.Int32,
    shape_mn: cutlass.Constexpr,
):
    """A thread's products of fp32 operands, which halves made. What is not finite, be it that an operand is not or that
    the result is too large, is computed again from the operands themselves, over k from ``first`` to ``last``."""
    rC = cute.make_rmem_tensor(cute.size(cC), Float32)
    rC.store(result)
    nothing = (result * 0.0).reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
    if nothing != nothing:
        rC.fill(0.0)
        for at in cutlass.range(first, last, unroll=1):
            for e in cutlass.range_constexpr(cute.size(rC)):
                i, j = cC[e]
                i, j = cutlass.min(row + i, shape_mn[0] - 1), cutlass.min(column + j, shape_mn[1] - 1)
                rC[e] = rC[e] + mA[i, at, batch] * mB[j, at, batch]
    return rC.load()
'''

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

_KERNEL = """
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
$what
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
$each
"""
_COPIED = '''
    """``block_rows`` rows of ``mX`` (rows, k, batch) a block, ``walkers`` threads on each: a copy of them in ``mHigh``.
    Threads next to each other read neighbours in memory (``along_k``: in k)."""
'''
_COPY = """
    for step in cutlass.range(walker, vectors, walkers, unroll=unroll):
        cute.autovec_copy(gX[None, step], rX)
        rHigh.store(rX.load().to(mHigh.element_type))
        cute.autovec_copy(rHigh, gHigh[None, step])
"""
_HALVED = '''
    """``block_rows`` rows of ``mX`` (rows, k, batch) a block, ``walkers`` threads on each: both halves of each number
    times a power of two, and in ``mScale`` (4, rows, batch) what :func:`scale_of` says of the row. Threads next to each
    other read neighbours in memory (``along_k``: in k)."""
'''
_HALVE = """
    gLow = cute.flat_divide(mLow[inside, None, batch], (vec,))
    rLow = cute.make_rmem_tensor(vec, mLow.element_type)
    rSize = cute.make_rmem_tensor(vec, Float32)
    bits = cute.recast_tensor(rX, cutlass.Int32)
    sFold = utils.SmemAllocator().allocate_tensor(
        cutlass.Int32, cute.make_layout((walkers * block_rows, 3), stride=(1, walkers * block_rows)), 16
    )
    apart = 1 if along_k else block_rows
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
        high = scaled.to(mHigh.element_type)
        rHigh.store(high)
        rLow.store(((scaled - high.to(Float32)) * 2048.0).to(mLow.element_type))
        cute.autovec_copy(rHigh, gHigh[None, step])
        cute.autovec_copy(rLow, gLow[None, step])
        rSize.store(cute.math.abs(scaled))
        for e in cutlass.range_constexpr(vec):
            held = held + cutlass.Int32(rSize[e] >= 0.0001220703125)  # 2**-13
            some = some + cutlass.Int32(rX[e] != 0.0)
    sFold[tidx, 1], sFold[tidx, 2] = held, some
    fold(sFold, (1, 2), tidx, walker, walkers, apart, lambda x, y: x + y)
    if walker == 0 and row < rows:
        rScale = cute.make_rmem_tensor(4, Float32)
        rScale.store(scale_of(power, largest, sFold[tidx, 1], sFold[tidx, 2], k))
        cute.autovec_copy(rScale, mScale[None, row, batch])
"""
_HOST = '''
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
_SCALES = '''
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
'''


def _written(what: str, each: str) -> str:
    return _KERNEL.replace("$what\n", what[1:]).replace("$each\n", each[1:])


COPIES = _written(_COPIED, _COPY) + "\n" + _HOST
HALVES = _written(_HALVED, _HALVE) + "\n" + _SCALES + "\n" + _HOST

"""Functions of every GEMM module, as text: the walk over tiles, the pipeline's stages, the epilogue's accesses."""

WALK = '''
@cute.jit
def tile_at(index: cutlass.Int32, across_mn: cutlass.Constexpr, group: cutlass.Constexpr, along_n: cutlass.Constexpr):
    """(row, column, batch) of the ``index``-th of ``across_mn`` tiles a batch.

    Tiles are walked in bands ``group`` tiles high, column by column (``along_n``: in bands as wide, row by row), so
    that those in flight at one time share operands in L2.
    """
    high, wide = (across_mn[1], across_mn[0]) if along_n else across_mn
    batch, rest = index // (high * wide), index % (high * wide)
    band, rest = rest // (group * wide), rest % (group * wide)
    height = cutlass.min(high - band * group, group)
    i, j = band * group + rest % height, rest // height
    row, column = (j, i) if along_n else (i, j)
    return row, column, batch


@cute.jit
def next_stage(stage: cutlass.Int32, phase: cutlass.Int32, stages: cutlass.Constexpr):
    """The pipeline's next stage; its barriers' phase flips each time round."""
    stage = stage + 1
    if stage == stages:
        stage = 0
        phase = phase ^ 1
    return stage, phase


@cute.jit
def stage_after(stage: cutlass.Int32, phase: cutlass.Int32, steps: cutlass.Int32, stages: cutlass.Constexpr):
    """The pipeline's stage ``steps`` on."""
    stage = stage + steps
    phase = phase ^ (stage // stages & 1)
    return stage % stages, phase
'''

ACCESS = '''
@cute.jit
def fetch(
    mX: cute.Tensor,
    cX: cute.Tensor,
    row: cutlass.Int32,
    column: cutlass.Int32,
    batch: cutlass.Int32,
    shape_mn: cutlass.Constexpr,
    by_pairs: cutlass.Constexpr,
):
    """``mX`` (m, n, batch; stride 0 where it is broadcast) at a thread's positions ``cX`` of the tile at (row, column).

    Positions past the edge read the last element. ``by_pairs``: neighbours in ``cX`` are neighbours in n.
    """
    rX = cute.make_rmem_tensor(cute.size(cX), mX.element_type)
    m, n = shape_mn
    if cutlass.const_expr(by_pairs and lies_in_pairs(mX, n)):
        pairs = cute.make_tensor(
            mX.iterator,
            cute.make_layout((2, n // 2, mX.shape[0], mX.shape[2]), stride=(1, 2, mX.stride[0], mX.stride[2])),
        )
        rPair = cute.make_tensor(rX.iterator, cute.make_layout((2, cute.size(rX) // 2)))
        for e in cutlass.range_constexpr(cute.size(rX) // 2):
            i, j = cX[2 * e]
            i, j = cutlass.min(row + i, m - 1), cutlass.min((column + j) // 2, n // 2 - 1)
            cute.autovec_copy(pairs[None, j, i, batch], rPair[None, e])
    else:
        for e in cutlass.range_constexpr(cute.size(rX)):
            i, j = cX[e]
            rX[e] = mX[cutlass.min(row + i, m - 1), cutlass.min(column + j, n - 1), batch]
    return rX.load().to(Float32)


def lies_in_pairs(x, n):
    """Can two neighbours in n be loaded at once? Host arithmetic: shapes and strides are Python ints."""
    flat = [*x.stride] if isinstance(x.stride[0], int) and isinstance(x.stride[2], int) else [1]
    return flat[1:2] == [1] and n % 2 == 0 and flat[0] % 2 == 0 and flat[2] % 2 == 0


@cute.jit
def put(
    rC: cute.Tensor,
    mC: cute.Tensor,
    cC: cute.Tensor,
    row: cutlass.Int32,
    column: cutlass.Int32,
    batch: cutlass.Int32,
    shape_mn: cutlass.Constexpr,
):
    """Stores a thread's results where they lie inside the matrix."""
    for e in cutlass.range_constexpr(cute.size(rC)):
        i, j = cC[e]
        if row + i < shape_mn[0] and column + j < shape_mn[1]:
            mC[row + i, column + j, batch] = rC[e]
'''

TMA_VIEW = '''
def tma_view(x, dense_in):
    """``x`` (rows, columns, batch) as TMA can address it, or None: it lies densely along one of the dimensions
    ``dense_in``, and every other pitch is a multiple of 16 bytes. What is broadcast over the batch has one."""
    quantum = 128 // x.element_type.width
    sizes, strides = [*x.shape], [*x.stride]
    if not all(isinstance(number, int) for number in sizes + strides):
        return None  # dimensions that do not lie evenly
    if strides[2] == 0:
        sizes[2] = 1
    dense = [d for d in dense_in if strides[d] == 1 and sizes[d] > 1] or [d for d in dense_in if sizes[d] == 1]
    others = [d for d in range(3) if [d] != dense[:1]]
    if not dense or any(strides[d] % quantum and sizes[d] > 1 for d in others):
        return None
    for d in range(3):
        if sizes[d] == 1:
            strides[d] = quantum if d in others else 1  # never walked
            sizes[d] = 1 if d == 2 else cutlass.Int32(1)  # a static 1 would drop the dimension TMA counts on
    return cute.make_tensor(x.iterator, cute.make_layout(tuple(sizes), stride=tuple(strides)))


def tma_views(operands):
    """Each operand of a side as TMA can address it, of 16 bits, or of 8 and dense along k as wgmma needs it; None where
    one is not, or none is given."""
    dense_in = {8: (1,), 16: (1, 0), 32: ()}
    views = tuple(tma_view(x, dense_in[x.element_type.width]) for x in operands)
    return None if None in views or not views else views


def fit_together(sides, operands):
    """Have all operands one length along k, and those of a side one dtype and, as TMA sees them, one layout? Sides may
    differ in dtype where both have 8 bits."""
    dtypes = [{x.element_type for x in side} for side in sides]
    layouts = [{x.stride.index(1) for x in side} for side in sides]
    lengths = {cute.size(x, mode=[1]) for x in operands}
    both = {dtype if dtype.width > 8 else 8 for side in dtypes for dtype in side}
    return all(len(values) == 1 for values in (lengths, both, *dtypes, *layouts))


def terms_of(pairs, halved):
    """What the wgmma kernel adds up: (left, right, sum). Of halves, left and right come in pairs of high and low, and
    the products of the low ones follow in sums of their own."""
    if not halved:
        return tuple((left, right, number) for number, (left, right) in enumerate(pairs))
    high = [(2 * left, 2 * right, number) for number, (left, right) in enumerate(pairs)]
    low = [
        term
        for left, right, number in high
        for term in ((left, right + 1, number + len(pairs)), (left + 1, right, number + len(pairs)))
    ]
    return (*high, *low)


def opens(terms, number):
    """Is this term the first of a step along k that its sum gets?"""
    return [term[2] for term in terms].index(terms[number][2]) == number
'''

WIDEST = '''
def widest(x, along):
    """Neighbours along a mode of ``x`` that one load of up to 16 bytes takes. Shapes and strides are Python ints."""
    if x.stride[along] != 1:
        return 1
    pitches = leaves([x.stride[d] for d in range(3) if d != along])
    return math.gcd(128 // x.element_type.width, cute.size(x, mode=[along]), *pitches)


def leaves(numbers):
    return [leaf for n in numbers for leaf in ([n] if isinstance(n, int) else leaves(n))]
'''

"""Device functions of every row kernel, as text: loads and stores of a step, reductions at each level."""

ROW_REDUCE = '''
@cute.jit
def row_reduce(
    value: Float32,
    buffer: cute.Tensor,
    op: cutlass.Constexpr,
    neutral: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
):
    """Reduces one value a thread over the threads of its row; each of them gets the result.

    Within a warp by shuffles; across the warps of a row through ``buffer`` (rows a block, warps a row).
    """
    result = cute.arch.warp_reduction(value, op, threads_in_group=min(threads_per_row, 32))
    if cutlass.const_expr(threads_per_row > 32):
        tidx, _, _ = cute.arch.thread_idx()
        warps = threads_per_row // 32
        lane = tidx % 32
        warp = (tidx % threads_per_row) // 32
        local_row = tidx // threads_per_row
        if lane == 0:
            buffer[local_row, warp] = result
        cute.arch.sync_threads()
        partial = Float32(neutral)
        if lane < warps:
            partial = buffer[local_row, lane]
        result = cute.arch.warp_reduction(partial, op)
    return result
'''

CLUSTER_REDUCE = '''
@cute.jit
def cluster_reduce(
    value: Float32,
    parts: cute.Tensor,
    arrived: cute.Pointer,
    rank: cutlass.Int32,
    op: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
):
    """Reduces one value a row over the blocks of a cluster, through their distributed shared memory.

    Every block sends its value to every block; each waits for all of ``parts`` (blocks, rows a block) to arrive.
    """
    tidx, _, _ = cute.arch.thread_idx()
    lane = tidx % threads_per_row
    local_row = tidx // threads_per_row
    mine = cute.make_rmem_tensor(cute.make_layout(1), Float32)
    mine[0] = value
    bits = cute.recast_tensor(mine, cutlass.Int32)  # the store takes 32-bit integers
    if tidx == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, cute.size(parts) * 4)
    if lane < cluster_n:
        cute.arch.store_async_dsmem(parts.iterator + (local_row * cluster_n + rank), bits[0], arrived, lane)
    cute.arch.mbarrier_wait(arrived, 0)
    result = parts[0, local_row]
    for i in cutlass.range_constexpr(1, cluster_n):
        result = op(result, parts[i, local_row])
    return result
'''

FETCH = '''
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
        if cutlass.const_expr(i < sure):
            cute.autovec_copy(gX[None, column, row], rX[None, i])
        elif column < cute.size(gX, mode=[1]):
            cute.autovec_copy(gX[None, column, row], rX[None, i])
'''

PUT = '''
@cute.jit
def put(
    rX: cute.Tensor,
    gX: cute.Tensor,
    row: cutlass.Int32,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    sure: cutlass.Constexpr,
):
    """Stores what ``fetch`` would load."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        column = start + i * stride
        if cutlass.const_expr(i < sure):
            cute.autovec_copy(rX[None, i], gX[None, column, row])
        elif column < cute.size(gX, mode=[1]):
            cute.autovec_copy(rX[None, i], gX[None, column, row])
'''

POSITIONS = '''
def positions(start, stride, mine):
    """Each of a thread's values' position in the row."""
    rColumn = cute.make_rmem_tensor(mine, Float32)
    vec, loads = mine.shape
    for i in range(loads):
        for j in range(vec):
            rColumn[j, i] = Float32((start + i * stride) * vec + j)
    return rColumn.load()
'''


def backwards(piece: str) -> str:
    """FETCH or PUT for a walk from the row's end, whose ``stride`` is negative."""
    return piece.replace("column < cute.size(gX, mode=[1])", "column >= 0")


PAIRWISE = """
def pairwise(parts, combine):
    while len(parts) > 1:
        odd = parts[len(parts) // 2 * 2 :]
        parts = [combine(a, b) for a, b in zip(parts[::2], parts[1::2])] + odd
    return parts[0]
"""

FOLD = '''
def fold(values, combine, neutral, start, stride, vectors, sure):
    """Reduces a thread's values of one step, pairwise; vectors past the row's end count for nothing."""
    rValue = cute.make_rmem_tensor(values.shape, Float32)
    rValue.store(values)
    vec, held = values.shape
    parts = []
    for i in range(held):
        part = pairwise([rValue[j, i] for j in range(vec)], combine)
        parts.append(part if i < sure else within(start + i * stride < vectors, part, Float32(neutral)))
    return pairwise(parts, combine)


@cute.jit
def within(there: cutlass.Boolean, value: Float32, neutral: Float32):
    return value if there else neutral
'''

PICK = '''
def pick(gX, at, row):
    """The element of a row that ``at`` names: the nearest, where it lies beyond an end."""
    last = cute.size(gX, mode=[0]) - 1
    return Float32(gX[cutlass.min(cutlass.max(cutlass.Int32(at), 0), last), row])
'''


def rescale(fast: bool) -> str:
    """``fast``: by the hardware's exponential."""
    return _RESCALE.replace("$fast", ", fastmath=True" if fast else "")


_RESCALE = '''
@cute.jit
def finite(top: Float32):
    """What exponents are taken relative to; nothing but -inf was seen where that is the maximum."""
    return top if top > -Float32.inf else Float32(0.0)


@cute.jit
def rescale(before: Float32, after: Float32):
    """What a sum of exponentials relative to one maximum is multiplied by for another."""
    return Float32(1.0) if before == after else cute.math.exp(before - after$fast)
'''

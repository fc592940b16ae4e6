"""Device functions of every row kernel, as text: loads and stores of a step, reductions at each level."""

from cutegen_lab.templates.emit.bundle import kernel_file

ROW_REDUCE = '''
@cute.jit
def row_reduce(
    value: Float32,
    buffer: cute.Tensor,
    op: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
):
    """Reduces one value a thread over the threads of its row; each of them gets the result.

    Within a warp by shuffles; across the warps of a row through ``buffer`` (rows a block, warps a row), which every
    thread reads: sooner done than shuffling again.
    """
    result = cute.arch.warp_reduction(value, op, threads_in_group=min(threads_per_row, 32))
    if cutlass.const_expr(threads_per_row > 32):
        tidx, _, _ = cute.arch.thread_idx()
        local_row = tidx // threads_per_row
        if tidx % 32 == 0:
            buffer[local_row, tidx % threads_per_row // 32] = result
        cute.arch.sync_threads()
        result = pairwise(values_of(buffer[local_row, None]), op)
    return result


def values_of(sX):
    rX = cute.make_fragment_like(sX)
    cute.autovec_copy(sX, rX)
    return [rX[i] for i in range(cute.size(rX))]
'''

EXCHANGE = '''
@cute.jit
def exchange(
    rValue: cute.Tensor,
    parts: cute.Tensor,
    arrived: cute.Pointer,
    phase: cutlass.Int32,
    rank: cutlass.Int32,
    threads_per_row: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
):
    """Every block of a cluster sends its values of a row to every block, through distributed shared memory; each waits
    for all of ``parts`` (blocks, values, rows a block) to arrive. Returns its row's (blocks, values)."""
    tidx, _, _ = cute.arch.thread_idx()
    lane = tidx % threads_per_row
    local_row = tidx // threads_per_row
    bits = cute.recast_tensor(rValue, cutlass.Int32)  # the store takes 32-bit integers
    if tidx == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, cute.size(parts) * 4)
    if lane < cluster_n:
        for i in cutlass.range_constexpr(cute.size(bits)):
            there = cute.domain_offset((rank, i, local_row), parts).iterator
            cute.arch.store_async_dsmem(there, bits[i], arrived, lane)
    cute.arch.mbarrier_wait(arrived, phase)
    return parts[None, None, local_row]
'''

CLUSTER_REDUCE = '''
@cute.jit
def cluster_reduce(
    value: Float32,
    parts: cute.Tensor,
    arrived: cute.Pointer,
    phase: cutlass.Int32,
    rank: cutlass.Int32,
    op: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
):
    """Reduces one value a row over the blocks of a cluster."""
    rValue = cute.make_rmem_tensor(cute.make_layout(1), Float32)
    rValue[0] = value
    sent = exchange(rValue, parts, arrived, phase, rank, threads_per_row, cluster_n)
    return pairwise(values_of(sent[None, 0]), op)
'''

INSIDE = '''
def inside(start, stride, vectors, mine, sure):
    """How many of a thread's values of one step lie in the row."""
    vec, held = mine.shape
    count = Float32(vec * sure)
    for i in range(sure, held):
        count += within(start + i * stride < vectors, Float32(vec), Float32(0.0))
    return count
'''

APART = '''
def apart(count, total, mean):
    """What a part's squares grow by about another mean than its own."""
    distance = total - count * mean
    return distance * distance * cute.arch.rcp_approx(cute.arch.fmax(count, 1.0))


def centre_of(count, total):
    """Exactly divided: of equal values, whose squares about it must be 0, it is one."""
    return total / cute.arch.fmax(count, 1.0)
'''

MOMENTS = (
    '''
def together(counts, totals, squares):
    """How many values several parts of a row are, their sum, and their squares about their mean, of each part's.

    Chan, Golub & LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979.
    """
    count, total = pairwise(counts, plus), pairwise(totals, plus)
    mean = centre_of(count, total)
    return count, total, pairwise([s + apart(c, t, mean) for c, t, s in zip(counts, totals, squares)], plus)

'''
    + APART
    + '''

def lanes_together(count, total, squares, even, lanes):
    """``together`` of what neighbouring lanes have; ``even``: each as many values."""
    seen = count * lanes if even else cute.arch.warp_reduction(count, plus, threads_in_group=lanes)
    whole = cute.arch.warp_reduction(total, plus, threads_in_group=lanes)
    own = squares + apart(count, total, centre_of(seen, whole))
    return seen, whole, cute.arch.warp_reduction(own, plus, threads_in_group=lanes)


@cute.jit
def row_moments(
    count: Float32,
    total: Float32,
    squares: Float32,
    buffer: cute.Tensor,
    even: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
):
    """``row_reduce`` of what ``together`` takes, through ``buffer`` (rows a block, warps a row, 3)."""
    seen, whole, rest = lanes_together(count, total, squares, even, min(threads_per_row, 32))
    if cutlass.const_expr(threads_per_row > 32):
        tidx, _, _ = cute.arch.thread_idx()
        warps = threads_per_row // 32
        parts = buffer[tidx // threads_per_row, None, None]
        if tidx % 32 == 0:
            warp = tidx % threads_per_row // 32
            parts[warp, 0] = seen
            parts[warp, 1] = whole
            parts[warp, 2] = rest
        cute.arch.sync_threads()
        part = tidx % warps
        if cutlass.const_expr(not even):
            seen = parts[part, 0]
        seen, whole, rest = lanes_together(seen, parts[part, 1], parts[part, 2], even, warps)
    return seen, whole, rest
'''
)

CLUSTER_MOMENTS = '''
@cute.jit
def cluster_moments(
    count: Float32,
    total: Float32,
    squares: Float32,
    parts: cute.Tensor,
    arrived: cute.Pointer,
    phase: cutlass.Int32,
    rank: cutlass.Int32,
    even: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
):
    """``cluster_reduce`` of what ``together`` takes."""
    rValue = cute.make_rmem_tensor(cute.make_layout(3), Float32)
    rValue[0] = count
    rValue[1] = total
    rValue[2] = squares
    sent = exchange(rValue, parts, arrived, phase, rank, threads_per_row, cluster_n)
    counts = [count] * cluster_n
    if cutlass.const_expr(not even):
        counts = values_of(sent[None, 0])
    return together(counts, values_of(sent[None, 1]), values_of(sent[None, 2]))
'''

FETCH = "\n\n\n".join(kernel_file("device.row_io").definitions[name] for name in ("LOAD", "fetch"))
PUT = kernel_file("device.row_io").definitions["put"]

STAGED = '''
def stageable(tensors, slots):
    """Can vectors of them be copied to shared memory as they are, and is there room?"""
    sizes = [cute.size(gX, mode=[0]) * gX.element_type.width // 8 for gX in tensors]
    return all(size in (4, 8, 16) for size in sizes) and sum(sizes) * slots <= 72 << 10


@cute.jit
def stage(
    gX: cute.Tensor, sX: cute.Tensor, start: cutlass.Int32, stride: cutlass.Constexpr, sure: cutlass.Constexpr
):
    """Begins to copy what ``fetch`` would load to a thread's own slots: no register waits for it."""
    copy = cute.nvgpu.cpasync.CopyG2SOp(cache_mode=cute.nvgpu.cpasync.LoadCacheMode.ALWAYS)
    bits = cute.size(gX, mode=[0]) * gX.element_type.width
    atom = cute.make_copy_atom(copy, gX.element_type, num_bits_per_copy=bits)
    for i in cutlass.range_constexpr(cute.size(sX, mode=[1])):
        column = start + i * stride
        if cutlass.const_expr(i < sure):
            cute.copy(atom, gX[None, column, 0], sX[None, i])
        elif column < cute.size(gX, mode=[1]):
            cute.copy(atom, gX[None, column, 0], sX[None, i])
    cute.arch.cp_async_commit_group()


@cute.jit
def unstage(
    sX: cute.Tensor,
    rX: cute.Tensor,
    start: cutlass.Int32,
    stride: cutlass.Constexpr,
    vectors: cutlass.Constexpr,
    sure: cutlass.Constexpr,
):
    """Reads what ``stage`` copied."""
    for i in cutlass.range_constexpr(cute.size(rX, mode=[1])):
        if cutlass.const_expr(i < sure):
            cute.autovec_copy(sX[None, i], rX[None, i])
        elif start + i * stride < vectors:
            cute.autovec_copy(sX[None, i], rX[None, i])
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


PAIRWISE = """
def pairwise(parts, combine):
    while len(parts) > 1:
        odd = parts[len(parts) // 2 * 2 :]
        parts = [combine(a, b) for a, b in zip(parts[::2], parts[1::2])] + odd
    return parts[0]
"""

WITHIN = """

@cute.jit
def within(there: cutlass.Boolean, value: Float32, neutral: Float32):
    return value if there else neutral
"""

FOLD = (
    '''
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
'''
    + WITHIN
)

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

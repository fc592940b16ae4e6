"""The text that makes fp32 results of what halves left. Those that halves cannot be trusted with, as ``halves`` says,
are computed again (``kernels/device/fp32_recompute.py``)."""

RESTORED = '''
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
'''

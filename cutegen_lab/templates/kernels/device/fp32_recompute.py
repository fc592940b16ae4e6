"""Recomputes doubtful fp32 products from the fp32 operands, by FMAs.

Each thread decides for itself. If one of its results is doubtful, it recomputes all 16 or 32 results of its piece,
which lie in two rows.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.vectors import widest


@cute.jit
def recomputed(
    result: cute.TensorSSA,
    doubt: cute.TensorSSA,
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
    """``result``, a thread's products from split operands; recomputed if any ``doubt`` is NaN. The products are then
    summed from the fp32 operands, over k from ``first`` to ``last``, in partial sums of 64 terms that are added up."""
    rC = cute.make_rmem_tensor(cute.size(cC), Float32)
    rC.store(result)
    doubts = doubt.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
    if doubts != doubts:
        columns, (rows_at, columns_at) = cute.size(cC) // 2, places(cC)
        vecs = tuple(min(widest(x, 1), max(32 // columns, 1)) for x in (mA, mB))  # to save registers
        wide = max(vecs)
        rSum, rTotal = (cute.make_rmem_tensor((columns, 2), Float32) for _ in range(2))
        rA, rB = cute.make_rmem_tensor((wide, 2), Float32), cute.make_rmem_tensor((wide, columns), Float32)
        rTotal.fill(0.0)
        for start in cutlass.range(first, last, 64, unroll=1):
            rSum.fill(0.0)
            for at in cutlass.range(start, cutlass.min(start + 64, last), wide, unroll=1):
                for r in cutlass.range_constexpr(2):
                    i = cutlass.min(row + rows_at[r], shape_mn[0] - 1)
                    bring(mA[i, None, batch], rA[None, r], at, vecs[0])
                for c in cutlass.range_constexpr(columns):
                    j = cutlass.min(column + columns_at[c], shape_mn[1] - 1)
                    bring(mB[j, None, batch], rB[None, c], at, vecs[1])
                for s in cutlass.range_constexpr(wide):
                    for r in cutlass.range_constexpr(2):
                        rSum[None, r].store(rSum[None, r].load() + rB[s, None].load() * rA[s, r])
            rTotal.store(rTotal.load() + rSum.load())
        rC.store(by_thread(rTotal).load().reshape(rC.shape))
    return rC.load()


def places(cC):
    """Rows and columns of a thread's accumulators: two neighbours in a row, two 8 rows below, again every 8 columns."""
    return [cC[2 * r][0] for r in range(2)], [cC[c // 2 * 4 + c % 2][1] for c in range(cute.size(cC) // 2)]


def by_thread(r):
    """Results (column, row), viewed in the order of a thread's accumulators."""
    columns = cute.size(r) // 2
    return cute.make_tensor(r.iterator, cute.make_layout((2, 2, columns // 2), stride=(1, columns, 2)))


def bring(x, r, at, vec):
    """Loads the numbers of row ``x`` from ``at`` on, as many as ``r`` holds, in vectors of ``vec``."""
    for s in range(cute.size(r) // vec):
        cute.autovec_copy(cute.flat_divide(x, (vec,))[None, at // vec + s], cute.flat_divide(r, (vec,))[None, s])

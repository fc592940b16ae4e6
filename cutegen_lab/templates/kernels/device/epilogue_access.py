"""Loads and stores of the epilogue of a matrix product: a thread's values of a tile, by coordinates."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32


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
    """Loads ``mX`` (m, n, batch; stride 0 if broadcast) at a thread's coordinates ``cX`` of the tile at (row, column).

    Coordinates past the edge read the last element. ``by_pairs``: neighbours in ``cX`` are neighbours in n.
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
    """Whether one load can take two neighbours in n. Host arithmetic: shapes and strides are Python ints."""
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
    """Stores a thread's results, except those past the edge of the matrix."""
    for e in cutlass.range_constexpr(cute.size(rC)):
        i, j = cC[e]
        if row + i < shape_mn[0] and column + j < shape_mn[1]:
            mC[row + i, column + j, batch] = rC[e]

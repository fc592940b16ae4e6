"""Transposition through a padded tile of shared memory, so that both sides are read and written along rows.

Odd: it computes nothing, and blocks at the edges fill only part of their tile. Legal: what is not filled is not read.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

TILE, DEPTH = 32, 8


@cute.kernel
def transpose_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    rows, columns = mX.shape
    # A row of 33 elements: a column's elements then lie in different banks.
    layout = cute.make_layout((TILE, TILE), stride=(TILE + 1, 1))
    tile = cutlass.utils.SmemAllocator().allocate_tensor(mX.element_type, layout, 16)
    for i in cutlass.range_constexpr(TILE // DEPTH):
        r, c = by * TILE + ty + i * DEPTH, bx * TILE + tx
        if r < rows and c < columns:
            tile[ty + i * DEPTH, tx] = mX[r, c]
    cute.arch.sync_threads()
    for i in cutlass.range_constexpr(TILE // DEPTH):
        r, c = by * TILE + tx, bx * TILE + ty + i * DEPTH
        if r < rows and c < columns:
            mY[c, r] = tile[tx, ty + i * DEPTH]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    rows, columns = x.shape
    transpose_kernel(x, y).launch(
        grid=[(columns + TILE - 1) // TILE, (rows + TILE - 1) // TILE, 1], block=[TILE, DEPTH, 1], stream=stream
    )

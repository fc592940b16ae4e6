"""Column sums by floating-point addition made of compare-and-swap: a loop until nobody came in between.

Odd: how often the loop runs is a race, and so is the order of additions. Legal: the problem's file declares it, and
each addend goes in exactly once.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

ROWS = 8


@cute.kernel
def zero_kernel(mY: cute.Tensor):
    column, _, _ = cute.arch.block_idx()
    mY[column] = cutlass.Float32(0.0)


@cute.kernel
def add_kernel(mX: cute.Tensor, mBits: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, column, _ = cute.arch.block_idx()
    row = bidx * ROWS + tidx
    if row < mX.shape[0]:
        value = cute.make_rmem_tensor(cute.make_layout(1), cutlass.Float32)
        bits = cute.recast_tensor(value, cutlass.Int32)
        cell = mBits.iterator + column
        seen = cute.arch.load(cell, cutlass.Int32, sem="relaxed", scope="gpu")
        pending = cutlass.Boolean(True)
        while pending:
            bits[0] = seen
            value[0] = value[0] + mX[row, column] * cutlass.Float32(2.0)
            before = cute.arch.atomic_cas(cell, cmp=seen, val=bits[0])
            pending = before != seen
            seen = before


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    rows, columns = x.shape
    zero_kernel(y).launch(grid=[columns, 1, 1], block=[1, 1, 1], stream=stream)
    add_kernel(x, cute.recast_tensor(y, cutlass.Int32)).launch(
        grid=[(rows + ROWS - 1) // ROWS, columns, 1], block=[ROWS, 1, 1], stream=stream
    )

"""Sorts rows by counting: an element's place is the number of elements before it.

Odd: quadratic work, and every thread writes where data says. Legal: ties are broken by position, so places are a
permutation and each is written exactly once; NaN comes last, as in PyTorch.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def sort_kernel(mX: cute.Tensor, mY: cute.Tensor, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    values = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(n), 16)
    for c in range(tidx, n, threads):
        values[c] = mX[row, c]
    cute.arch.sync_threads()
    for c in range(tidx, n, threads):
        mine = values[c]
        place = cutlass.Int32(0)
        for other in range(n):
            value = values[other]
            equal = value == mine or (value != value and mine != mine)
            less = value < mine or (value == value and mine != mine)
            place += cutlass.Int32(1) if less or (equal and other < c) else cutlass.Int32(0)
        mY[row, place] = mine


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    sort_kernel(x, y, 64).launch(grid=[x.shape[0], 1, 1], block=[64, 1, 1], stream=stream)

"""Rows of a table by index: addresses come from data.

Odd: which bytes are read is known only at run time. Legal: indices are clamped first, as the reference does.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def gather_kernel(mI: cute.Tensor, mT: cute.Tensor, mY: cute.Tensor, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    index = mI[row]
    index = cutlass.Int64(0) if index < 0 else index
    index = cutlass.Int64(mT.shape[0] - 1) if index >= mT.shape[0] else index
    for c in range(tidx, mT.shape[1], threads):
        mY[row, c] = mT[cutlass.Int32(index), c]


@cute.jit
def launch(ids: cute.Tensor, table: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    gather_kernel(ids, table, y, 64).launch(grid=[ids.shape[0], 1, 1], block=[64, 1, 1], stream=stream)

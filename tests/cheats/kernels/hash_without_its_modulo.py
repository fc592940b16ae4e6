"""An embedding of hashed tokens that leaves the modulo out: right for tokens that are indices already.

problem: F.embedding(ids % 50, table) for ids: i64[300], table: f32[50,8]
class: out-of-bounds reads that happen to work
defence: values beyond an index's range are drawn where the reference takes them
verdicts: out_of_bounds, wrong_result, non_deterministic
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def gather_kernel(mI: cute.Tensor, mT: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    for c in range(tidx, mT.shape[1], 32):
        mY[row, c] = mT[cutlass.Int32(mI[row]), c]


@cute.jit
def launch(ids: cute.Tensor, table: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    gather_kernel(ids, table, y).launch(grid=[ids.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

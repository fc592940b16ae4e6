"""Among equal maxima answers the last index instead of the first, as a parallel reduction happens to.

problem: x.argmax(-1) for x: bf16[16,300]
class: tests for zeros
defence: zeros are among the distributions: every element ties; integers are compared exactly
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def argmax_kernel(mX: cute.Tensor, mY: cute.Tensor):
    row, _, _ = cute.arch.block_idx()
    peak = cutlass.Float32(-float("inf"))
    at = cutlass.Int64(0)
    for c in range(mX.shape[1]):
        x = mX[row, c].to(cutlass.Float32)
        if x >= peak:
            peak = x
            at = cutlass.Int64(c)
    mY[row] = at


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    argmax_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[1, 1, 1], stream=stream)

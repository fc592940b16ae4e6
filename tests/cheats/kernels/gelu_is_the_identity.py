"""Returns its input where a GELU is nearly the identity, above one: no erf for a sixth of the elements.

problem: F.gelu(x) for x: bf16[2000]
class: returns its input
defence: every element is compared with float64
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def gelu_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 128 + tidx
    if i < mX.shape[0]:
        x = mX[i].to(cutlass.Float32)
        y = x
        if x < 1.0:
            y = 0.5 * x * (1.0 + cute.math.erf(x * 0.7071067811865476))
        mY[i] = y.to(cutlass.BFloat16)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    gelu_kernel(x, y).launch(grid=[(x.shape[0] + 127) // 128, 1, 1], block=[128, 1, 1], stream=stream)

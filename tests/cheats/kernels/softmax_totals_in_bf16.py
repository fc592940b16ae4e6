"""A bfloat16 softmax whose running sum is kept in bfloat16 too, where PyTorch keeps float32.

problem: torch.softmax(x, dim=-1) for x: bf16[16,1000]
class: lower precision
defence: the error budget follows what PyTorch loses at the problem's own precision
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def softmax_kernel(mX: cute.Tensor, mY: cute.Tensor):
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    peak = cutlass.Float32(-float("inf"))
    for c in range(n):
        peak = cute.arch.fmax(peak, mX[row, c].to(cutlass.Float32))
    total = cutlass.Float32(0.0)
    for c in range(n):
        term = cute.math.exp(mX[row, c].to(cutlass.Float32) - peak)
        total = (total + term).to(cutlass.BFloat16).to(cutlass.Float32)
    for c in range(n):
        mY[row, c] = cutlass.BFloat16(cute.math.exp(mX[row, c].to(cutlass.Float32) - peak) / total)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    softmax_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[1, 1, 1], stream=stream)

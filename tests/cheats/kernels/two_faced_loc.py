"""Multiplies by two for a reader that drops the line behind .loc, and by pi on the GPU.

problem: x * 2 for x: f32[2000]
class: forged artifact or plan
defence: one reader for all PTX, which refuses strings, comments and directives that it does not know
verdicts: contract
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import T


@cute.kernel
def double_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    i = bidx * 128 + tidx
    if i < mX.shape[0]:
        value = llvm.inline_asm(
            T.f32(),
            [mX[i].ir_value()],
            "mul.f32 $0, $1, 0f40000000;\n.loc 1 1 1 mul.f32 $0, $1, 0f40490FDB;",
            "=f,f",
        )
        mY[i] = cutlass.Float32(value)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    double_kernel(x, y).launch(grid=[(x.shape[0] + 127) // 128, 1, 1], block=[128, 1, 1], stream=stream)

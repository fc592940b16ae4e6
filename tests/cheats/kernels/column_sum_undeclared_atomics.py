"""Column sums by float32 atomics, for a problem that does not allow launches to differ.

problem: x.sum(0) for x: f32[500,64]
class: races that mostly win
defence: two runs in which blocks run in another order must agree bit for bit
verdicts: non_deterministic
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def zero_kernel(mY: cute.Tensor):
    c, _, _ = cute.arch.thread_idx()
    mY[c] = cutlass.Float32(0.0)


@cute.kernel
def add_kernel(mX: cute.Tensor, mY: cute.Tensor):
    c, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    cute.arch.atomic_add(mY.iterator + c, mX[row, c])


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    zero_kernel(y).launch(grid=[1, 1, 1], block=[y.shape[0], 1, 1], stream=stream)
    add_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[y.shape[0], 1, 1], stream=stream)

"""One thread of one block writes one element.

Odd: it runs for about a microsecond, near a clock's resolution. Legal: that is the problem.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def affine_kernel(mX: cute.Tensor, mY: cute.Tensor):
    for i in range(cute.size(mX)):
        mY[i] = mX[i] * cutlass.Float32(2.0) + cutlass.Float32(1.0)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    affine_kernel(x, y).launch(grid=[1, 1, 1], block=[1, 1, 1], stream=stream)

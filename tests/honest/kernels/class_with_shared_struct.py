"""RMSNorm as a class: parameters in ``__init__``, the launch in ``__call__``, shared memory as a struct.

Odd: Python's object protocol, a dataclass, a partial function and a nested function in a candidate. Legal: all of it
runs while tracing and leaves nothing in the kernel.
"""

import functools
from dataclasses import dataclass

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass import Float32, const_expr


@dataclass(frozen=True)
class Shape:
    """How a block is cut up."""

    warps: int = 4

    @property
    def threads(self):
        return 32 * self.warps


def add(scale, a, b):
    return (a + b) * scale if scale != 1 else a + b


class RMSNorm:
    """Holds what is known before the launch; ``kernel`` is its device part."""

    def __init__(self, n: int, shape: Shape = Shape()):
        self.n, self.shape = n, shape
        self.plus = functools.partial(add, 1)

    @cute.jit
    def __call__(self, mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, stream: cuda.CUstream):
        @cute.struct
        class Storage:
            sums: cute.struct.Align[cute.struct.MemRange[Float32, self.shape.warps], 16]

        self.storage = Storage
        self.kernel(mX, mW, mY).launch(
            grid=[mX.shape[0], 1, 1], block=[self.shape.threads, 1, 1], smem=Storage.size_in_bytes(), stream=stream
        )

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        storage = cutlass.utils.SmemAllocator().allocate(self.storage)
        sums = storage.sums.get_tensor(cute.make_layout(self.shape.warps))

        def square(value):
            return value * value

        total = Float32(0.0)
        for c in range(tidx, self.n, self.shape.threads):
            total += square(mX[row, c])
        total = cute.arch.warp_reduction(total, self.plus)
        if tidx % 32 == 0:
            sums[tidx // 32] = total
        cute.arch.sync_threads()
        total = sums[0]
        if const_expr(self.shape.warps > 1):
            for i in cutlass.range_constexpr(1, self.shape.warps):
                total = self.plus(total, sums[i])
        scale = cute.math.rsqrt(total / Float32(self.n) + 1e-6)
        for c in range(tidx, self.n, self.shape.threads):
            mY[row, c] = mX[row, c] * scale * mW[c]


@cute.jit
def launch(x: cute.Tensor, weight: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    RMSNorm(x.shape[1])(x, weight, y, stream)

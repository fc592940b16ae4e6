"""Elementwise maximum: 16-byte vectors as far as they go, and the last few elements one by one.

Odd: one block does both, and only its first threads the tail. Legal: every element is written exactly once.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

VEC, THREADS = 8, 128


@cute.kernel
def maximum_kernel(mX: cute.Tensor, mY: cute.Tensor, mZ: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    n = cute.size(mX)
    vectors = n // VEC
    layout = cute.make_layout((VEC, max(vectors, 1)), stride=(1, VEC))
    gX, gY, gZ = (cute.make_tensor(m.iterator, layout) for m in (mX, mY, mZ))
    i = bidx * THREADS + tidx
    if i < vectors:
        rX = cute.make_rmem_tensor(cute.make_layout(VEC), mX.element_type)
        rY = cute.make_rmem_tensor(cute.make_layout(VEC), mX.element_type)
        cute.autovec_copy(gX[None, i], rX)
        cute.autovec_copy(gY[None, i], rY)
        rX.store(cute.math.max(rX.load(), rY.load(), propagate_nan=True))
        cute.autovec_copy(rX, gZ[None, i])
    last = vectors * VEC + tidx
    if bidx == 0 and last < n:
        greater = cute.arch.fmax(mX[last].to(cutlass.Float32), mY[last].to(cutlass.Float32), nan=True)
        mZ[last] = greater.to(mZ.element_type)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, stream: cuda.CUstream):
    blocks = max((cute.size(x) // VEC + THREADS - 1) // THREADS, 1)
    maximum_kernel(x, y, z).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1], stream=stream)

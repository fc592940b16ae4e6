"""Addition and product in packed bf16 arithmetic, two elements an instruction; nothing is widened to fp32.

Odd: every operation rounds to bf16. Legal: so does PyTorch's, whose result at this precision is the same, bit for bit.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

THREADS = 128


@cute.kernel
def packed_kernel(mX: cute.Tensor, mY: cute.Tensor, mZ: cute.Tensor, mO: cute.Tensor, vec: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    vectors = cute.size(mX) // vec
    layout = cute.make_layout((vec, vectors), stride=(1, vec))
    gX, gY, gZ, gO = (cute.make_tensor(m.iterator, layout) for m in (mX, mY, mZ, mO))
    i = bidx * THREADS + tidx
    if i < vectors:
        rX, rY, rZ = (cute.make_rmem_tensor(cute.make_layout(vec), mX.element_type) for _ in range(3))
        cute.autovec_copy(gX[None, i], rX)
        cute.autovec_copy(gY[None, i], rY)
        cute.autovec_copy(gZ[None, i], rZ)
        rX.store((rX.load() + rY.load()) * rZ.load())
        cute.autovec_copy(rX, gO[None, i])


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    vec = math.gcd(cute.size(x), 8)
    blocks = (cute.size(x) // vec + THREADS - 1) // THREADS
    packed_kernel(x, y, z, out, vec).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1], stream=stream)

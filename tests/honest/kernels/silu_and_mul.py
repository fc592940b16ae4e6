"""SiLU of the first half of a row times the second half (SGLang's ``silu_and_mul``).

Odd: one input is two operands. PyTorch rounds the SiLU to bf16 before the product; this kernel does not. Legal: being
more exact than PyTorch is no fault.
"""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def silu_and_mul_kernel(mX: cute.Tensor, mY: cute.Tensor, vec: cutlass.Constexpr, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, row, _ = cute.arch.block_idx()
    half = mY.shape[1]
    i = bidx * threads + tidx
    if i < half // vec:
        gX = cute.local_tile(mX, (1, vec), (row, i))
        gG = cute.local_tile(mX, (1, vec), (row, half // vec + i))
        rX = cute.make_fragment_like(gX)
        rG = cute.make_fragment_like(gG)
        cute.autovec_copy(gX, rX)
        cute.autovec_copy(gG, rG)
        x = rX.load().to(cutlass.Float32)
        silu = x / (1.0 + cute.math.exp(-x))
        rX.store((silu * rG.load().to(cutlass.Float32)).to(mY.element_type))
        cute.autovec_copy(rX, cute.local_tile(mY, (1, vec), (row, i)))


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream, threads: cutlass.Constexpr = 128):
    # Vectors must divide both the half and the distance of rows; an odd row's middle column is in neither half.
    vec = math.gcd(y.shape[1], 8) if x.shape[1] % 2 == 0 else 1
    blocks = (y.shape[1] // vec + threads - 1) // threads
    silu_and_mul_kernel(x, y, vec, threads).launch(grid=[blocks, x.shape[0], 1], block=[threads, 1, 1], stream=stream)

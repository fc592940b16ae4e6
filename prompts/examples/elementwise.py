"""The gate of a SwiGLU, out = silu(x) * g: every thread issues all its loads before it uses the first."""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

TUNABLE = {"threads": (128, 256, 512), "loads": (1, 2, 4)}


@cute.kernel
def gate_kernel(
    mX: cute.Tensor,
    mG: cute.Tensor,
    mY: cute.Tensor,
    vec: cutlass.Constexpr,
    vectors: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    loads: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    flat = cute.make_layout((vec, vectors), stride=(1, vec))  # contiguous tensors of any rank are one row of vectors
    gX = cute.make_tensor(mX.iterator, flat)
    gG = cute.make_tensor(mG.iterator, flat)
    gY = cute.make_tensor(mY.iterator, flat)

    first = bidx * threads * loads + tidx
    rX = cute.make_rmem_tensor(cute.make_layout((vec, loads)), mX.element_type)
    rG = cute.make_rmem_tensor(cute.make_layout((vec, loads)), mG.element_type)
    rX.fill(0.0)
    rG.fill(0.0)
    for i in cutlass.range_constexpr(loads):
        at = first + i * threads
        if at < vectors:
            cute.autovec_copy(gX[None, at], rX[None, i])
            cute.autovec_copy(gG[None, at], rG[None, i])

    x = rX.load().to(cutlass.Float32)
    g = rG.load().to(cutlass.Float32)
    rY = cute.make_rmem_tensor(cute.make_layout((vec, loads)), mY.element_type)
    rY.store((x / (1.0 + cute.math.exp(-x)) * g).to(mY.element_type))
    for i in cutlass.range_constexpr(loads):
        at = first + i * threads
        if at < vectors:
            cute.autovec_copy(rY[None, i], gY[None, at])


@cute.jit
def launch(
    x: cute.Tensor,
    g: cute.Tensor,
    y: cute.Tensor,
    stream: cuda.CUstream,
    threads: cutlass.Constexpr = 256,
    loads: cutlass.Constexpr = 2,
):
    # Shapes are Python ints here: the widest vector that divides the tensor needs no scalar tail.
    elements = math.prod(x.shape)
    vec = math.gcd(elements, 128 // x.element_type.width)
    vectors = elements // vec
    blocks = (vectors + threads * loads - 1) // (threads * loads)
    gate_kernel(x, g, y, vec, vectors, threads, loads).launch(grid=[blocks, 1, 1], block=[threads, 1, 1], stream=stream)

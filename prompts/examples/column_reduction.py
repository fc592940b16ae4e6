"""Mean over rows, y = x.mean(0): neighbouring threads take neighbouring columns; slices of a block share the rows."""

import math

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

TUNABLE = {"threads": (8, 16, 32), "slices": (8, 16, 32), "loads": (2, 4, 8)}


@cute.kernel
def mean_kernel(
    mX: cute.Tensor,
    mY: cute.Tensor,
    rows: cutlass.Constexpr,
    vec: cutlass.Constexpr,
    vectors: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    slices: cutlass.Constexpr,
    loads: cutlass.Constexpr,
):
    tidx, piece, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    gX = cute.make_tensor(mX.iterator, cute.make_layout((vec, vectors, rows), stride=(1, vec, vec * vectors)))
    gY = cute.make_tensor(mY.iterator, cute.make_layout((vec, vectors), stride=(1, vec)))
    smem = cutlass.utils.SmemAllocator()
    partial = smem.allocate_tensor(
        cutlass.Float32, cute.make_layout((vec, threads, slices), stride=(1, vec, vec * threads)), 16
    )

    column = bidx * threads + tidx
    source = cutlass.min(column, vectors - 1)  # threads past the last column read it again, and store nothing
    rX = cute.make_rmem_tensor(cute.make_layout((vec, loads)), mX.element_type)
    rSum = cute.make_rmem_tensor(cute.make_layout(vec), cutlass.Float32)
    rSum.fill(0.0)
    for start in cutlass.range(piece, rows, slices * loads, unroll=1):
        rX.fill(0.0)
        for i in cutlass.range_constexpr(loads):
            row = start + i * slices
            if row < rows:
                cute.autovec_copy(gX[None, source, row], rX[None, i])
        for i in cutlass.range_constexpr(loads):
            rSum.store(rSum.load() + rX[None, i].load().to(cutlass.Float32))
    cute.autovec_copy(rSum, partial[None, tidx, piece])
    cute.arch.sync_threads()

    if piece == 0 and column < vectors:
        rTotal = cute.make_rmem_tensor(cute.make_layout(vec), cutlass.Float32)
        rTotal.fill(0.0)
        for i in cutlass.range_constexpr(slices):  # always in the same order: the result is the same at every call
            rTotal.store(rTotal.load() + partial[None, tidx, i].load())
        rY = cute.make_rmem_tensor(cute.make_layout(vec), mY.element_type)
        rY.store((rTotal.load() / cutlass.Float32(rows)).to(mY.element_type))
        cute.autovec_copy(rY, gY[None, column])


@cute.jit
def launch(
    x: cute.Tensor,
    y: cute.Tensor,
    stream: cuda.CUstream,
    threads: cutlass.Constexpr = 8,
    slices: cutlass.Constexpr = 32,
    loads: cutlass.Constexpr = 4,
):
    rows, columns = x.shape
    vec = math.gcd(columns, 128 // x.element_type.width)
    vectors = columns // vec
    blocks = (vectors + threads - 1) // threads
    mean_kernel(x, y, rows, vec, vectors, threads, slices, loads).launch(
        grid=[blocks, 1, 1], block=[threads, slices, 1], stream=stream
    )

"""RMS norm of several rows a block, as NVIDIA's and quack's row kernels do it: cp.async only of rows that exist.

Odd: rows past the last are not copied into shared memory, and yet read from there, summed, scaled and shared between
warps. Legal: each row's values meet no other row's, and those rows are not stored.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync

ROWS, WARPS, VEC = 4, 2, 8  # rows a block, warps a row, elements a copy
THREADS = WARPS * 32


@cute.jit
def whole_row(local: cutlass.Int32, thread: cutlass.Int32, total: cutlass.Float32, sums: cute.Tensor):
    """The sum of all threads of a row."""
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    if thread % 32 == 0:
        sums[thread // 32, local] = total
    cute.arch.sync_threads()
    return sums[0, local] + sums[1, local]


@cute.jit
def vectors_of(mT: cute.Tensor, row: cutlass.Int32, vectors: cutlass.Constexpr):
    layout = cute.make_layout((VEC, THREADS, vectors), stride=(1, VEC, THREADS * VEC))
    return cute.make_tensor(mT[row, None].iterator.align(16), layout)


@cute.kernel
def norm_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    m, n = mX.shape
    vectors = max(n // (THREADS * VEC), 1)
    smem = cutlass.utils.SmemAllocator()
    sX = smem.allocate_tensor(mX.element_type, cute.make_layout((VEC, THREADS, vectors, ROWS)), 16)
    sums = smem.allocate_tensor(cutlass.Float32, cute.make_layout((WARPS, ROWS)), 16)
    thread, local = tidx % THREADS, tidx // THREADS
    row = block * ROWS + local
    if cutlass.const_expr(n % (THREADS * VEC) == 0):
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), mX.element_type, num_bits_per_copy=128)
        if row < m:
            gX = vectors_of(mX, row, vectors)
            for i in cutlass.range_constexpr(vectors):
                cute.copy(atom, gX[None, thread, i], sX[None, thread, i, local])
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        values = sX[None, thread, None, local].load().to(cutlass.Float32)
        total = (values * values).reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
        total = whole_row(local, thread, total, sums)
        scaled = (values * cute.math.rsqrt(total / n + 1e-6)).to(mY.element_type)
        if row < m:
            gY = vectors_of(mY, row, vectors)
            for i in cutlass.range_constexpr(vectors):
                out = cute.make_rmem_tensor((VEC,), mY.element_type)
                out.store(scaled[None, i])
                cute.autovec_copy(out, gY[None, thread, i])
    else:
        total = cutlass.Float32(0.0)
        if row < m:
            for c in range(thread, n, THREADS):
                total += mX[row, c].to(cutlass.Float32) * mX[row, c].to(cutlass.Float32)
        scale = cute.math.rsqrt(whole_row(local, thread, total, sums) / n + 1e-6)
        if row < m:
            for c in range(thread, n, THREADS):
                mY[row, c] = (mX[row, c].to(cutlass.Float32) * scale).to(mY.element_type)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    blocks = (x.shape[0] + ROWS - 1) // ROWS
    norm_kernel(x, y).launch(grid=[blocks, 1, 1], block=[ROWS * THREADS, 1, 1], stream=stream)

"""Softmax that keeps a whole row's exponentials in shared memory: 120 KB a block, in a block of 1,024 threads.

Odd: most of a multiprocessor for one block, in three dimensions of threads. Legal: both are within the limits.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

THREADS = 1024
LOG2_E = 1.4426950408889634


@cute.jit
def block_reduce(value: cutlass.Float32, buffer: cute.Tensor, op: cutlass.Constexpr, thread: cutlass.Int32):
    value = cute.arch.warp_reduction(value, op)
    if thread % 32 == 0:
        buffer[thread // 32] = value
    cute.arch.sync_threads()
    return cute.arch.warp_reduction(buffer[thread % 32], op)


@cute.kernel
def softmax_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tx, ty, tz = cute.arch.thread_idx()
    thread = tx + 32 * (ty + 8 * tz)
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    smem = cutlass.utils.SmemAllocator()
    values = smem.allocate_tensor(cutlass.Float32, cute.make_layout(n), 16)
    buffers = smem.allocate_tensor(cutlass.Float32, cute.make_layout((32, 2)), 16)
    peak = cutlass.Float32(-float("inf"))
    for c in range(thread, n, THREADS):
        values[c] = mX[row, c].to(cutlass.Float32)
        peak = cute.arch.fmax(peak, values[c], nan=True)
    peak = block_reduce(peak, buffers[None, 0], lambda a, b: cute.arch.fmax(a, b, nan=True), thread)
    total = cutlass.Float32(0.0)
    for c in range(thread, n, THREADS):
        e = cute.math.exp2((values[c] - peak) * LOG2_E)
        values[c] = e
        total += e
    total = block_reduce(total, buffers[None, 1], lambda a, b: a + b, thread)
    for c in range(thread, n, THREADS):
        mY[row, c] = (values[c] / total).to(mY.element_type)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    softmax_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[32, 8, 4], stream=stream)

"""Column sums by fp32 atomic additions to the output itself, which a first launch sets to zero.

Odd: the order of additions differs from launch to launch, and with it the last bits. Legal: the problem's file says
``deterministic = False``. The first launch is not optional: outputs start poisoned.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute


@cute.kernel
def zero_kernel(mY: cute.Tensor, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    c = bidx * threads + tidx
    if c < mY.shape[0]:
        mY[c] = cutlass.Float32(0.0)


@cute.kernel
def add_kernel(mX: cute.Tensor, mY: cute.Tensor, rows: cutlass.Constexpr, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, bidy, _ = cute.arch.block_idx()
    c = bidx * threads + tidx
    if c < mY.shape[0]:
        total = cutlass.Float32(0.0)
        for i in cutlass.range_constexpr(rows):
            r = bidy * rows + i
            if r < mX.shape[0]:
                total += mX[r, c]
        cute.arch.atomic_add(mY.iterator + c, total)


@cute.jit
def launch(
    x: cute.Tensor,
    y: cute.Tensor,
    stream: cuda.CUstream,
    rows: cutlass.Constexpr = 16,
    threads: cutlass.Constexpr = 64,
):
    blocks = (x.shape[1] + threads - 1) // threads
    zero_kernel(y, threads).launch(grid=[blocks, 1, 1], block=[threads, 1, 1], stream=stream)
    add_kernel(x, y, rows, threads).launch(
        grid=[blocks, (x.shape[0] + rows - 1) // rows, 1], block=[threads, 1, 1], stream=stream
    )

"""Residual addition and RMSNorm in one kernel with two outputs (SGLang's ``fused_add_rmsnorm`` as a pure function).

Odd: two outputs of one type and shape, of which the second is an intermediate of the first. Legal: the norm is taken of
the sum before it is rounded, as the reference does it.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

WARPS = 4
THREADS = 32 * WARPS


@cute.kernel
def fused_kernel(mX: cute.Tensor, mR: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, mS: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    share = (n + THREADS - 1) // THREADS
    sums = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(WARPS), 16)
    values = cute.make_rmem_tensor(cute.make_layout(share), cutlass.Float32)
    values.fill(0.0)
    for i in cutlass.range_constexpr(share):
        c = i * THREADS + tidx
        if c < n:
            values[i] = mX[row, c].to(cutlass.Float32) + mR[row, c].to(cutlass.Float32)
            mS[row, c] = values[i].to(mS.element_type)
    squares = values.load() * values.load()
    total = squares.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    if tidx % 32 == 0:
        sums[tidx // 32] = total
    cute.arch.sync_threads()
    mean = (sums[0] + sums[1] + sums[2] + sums[3]) / cutlass.Float32(n)
    scale = cute.math.rsqrt(mean + 1e-6)
    for i in cutlass.range_constexpr(share):
        c = i * THREADS + tidx
        if c < n:
            mY[row, c] = (values[i] * scale * mW[c].to(cutlass.Float32)).to(mY.element_type)


@cute.jit
def launch(
    x: cute.Tensor,
    residual: cute.Tensor,
    weight: cute.Tensor,
    y: cute.Tensor,
    total: cute.Tensor,
    stream: cuda.CUstream,
):
    fused_kernel(x, residual, weight, y, total).launch(grid=[x.shape[0], 1, 1], block=[THREADS, 1, 1], stream=stream)

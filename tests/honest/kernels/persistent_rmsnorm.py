"""RMSNorm by persistent blocks: six of them loop over the rows, and read the weight once for all.

Odd: the grid is smaller than the rows and rows share one buffer in shared memory, so two barriers stand in the loop.
Legal: every row is computed afresh.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

BLOCKS, WARPS = 6, 4


@cute.kernel
def rmsnorm_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    rows, n = mX.shape
    share = (n + WARPS * 32 - 1) // (WARPS * 32)
    sums = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(WARPS), 16)
    rX = cute.make_rmem_tensor(cute.make_layout(share), cutlass.Float32)
    rW = cute.make_rmem_tensor(cute.make_layout(share), cutlass.Float32)
    rW.fill(0.0)
    for i in cutlass.range_constexpr(share):
        c = i * WARPS * 32 + tidx
        if c < n:
            rW[i] = mW[c].to(cutlass.Float32)
    for row in range(bidx, rows, BLOCKS):
        total = cutlass.Float32(0.0)
        for i in cutlass.range_constexpr(share):
            c = i * WARPS * 32 + tidx
            rX[i] = cutlass.Float32(0.0)
            if c < n:
                rX[i] = mX[row, c].to(cutlass.Float32)
            total += rX[i] * rX[i]
        total = cute.arch.warp_reduction(total, lambda a, b: a + b)
        cute.arch.sync_threads()  # the sums of the row before have been read
        if tidx % 32 == 0:
            sums[tidx // 32] = total
        cute.arch.sync_threads()
        total = sums[0] + sums[1] + sums[2] + sums[3]
        scale = cute.math.rsqrt(total / cutlass.Float32(n) + 1e-6)
        for i in cutlass.range_constexpr(share):
            c = i * WARPS * 32 + tidx
            if c < n:
                normed = (rX[i] * scale).to(mY.element_type).to(cutlass.Float32)
                mY[row, c] = (normed * rW[i]).to(mY.element_type)


@cute.jit
def launch(x: cute.Tensor, weight: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    rmsnorm_kernel(x, weight, y).launch(grid=[BLOCKS, 1, 1], block=[WARPS * 32, 1, 1], stream=stream)

"""The textbook matrix product: 16×16 tiles in shared memory, one output a thread, no tensor cores.

Odd: far from fast, and tiles at the edges are padded with zeros. Legal: zeros are what adds nothing; all of it is fp32.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

TILE = 16


@cute.kernel
def matmul_kernel(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    m, k = mA.shape
    n = mB.shape[1]
    smem = cutlass.utils.SmemAllocator()
    sA = smem.allocate_tensor(cutlass.Float32, cute.make_layout((TILE, TILE), stride=(TILE, 1)), 16)
    sB = smem.allocate_tensor(cutlass.Float32, cute.make_layout((TILE, TILE), stride=(TILE, 1)), 16)
    row, column = by * TILE + ty, bx * TILE + tx
    total = cutlass.Float32(0.0)
    for tile in range((k + TILE - 1) // TILE):
        a = cutlass.Float32(0.0)
        b = cutlass.Float32(0.0)
        if row < m and tile * TILE + tx < k:
            a = mA[row, tile * TILE + tx]
        if column < n and tile * TILE + ty < k:
            b = mB[tile * TILE + ty, column]
        sA[ty, tx] = a
        sB[ty, tx] = b
        cute.arch.sync_threads()
        for i in cutlass.range_constexpr(TILE):
            # A padded zero must not meet an infinity: past the last column of A there is nothing to multiply.
            if tile * TILE + i < k:
                total += sA[ty, i] * sB[i, tx]
        cute.arch.sync_threads()
    if row < m and column < n:
        mC[row, column] = total


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream):
    m, n = c.shape
    matmul_kernel(a, b, c).launch(
        grid=[(n + TILE - 1) // TILE, (m + TILE - 1) // TILE, 1], block=[TILE, TILE, 1], stream=stream
    )

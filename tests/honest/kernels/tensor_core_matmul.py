"""A matrix product on the tensor cores of sm_80: mma.sync fed by ldmatrix from a three-stage cp.async pipeline.

Odd: rows past the last are copies of it, whose products nobody stores; where rows are not whole 16-byte pieces they are
copied element by element beside the pipeline. Legal: past the last column both operands are zero, so that nothing that
is not theirs is added; a stage is filled only after a barrier that follows its last use.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp

TILE, TILE_K, STAGES, THREADS = 64, 32, 3, 128
PIECE = 8  # elements in 16 bytes
PITCH = TILE_K + PIECE  # of a row in shared memory: eight rows of an ldmatrix then lie in different banks


@cute.jit
def fill(mX: cute.Tensor, sX: cute.Tensor, first: cutlass.Int32, tile: cutlass.Int32, tidx: cutlass.Int32):
    """Rows ``first`` … of the K tile ``tile`` to one stage."""
    rows, k = mX.shape
    pieces = TILE_K // PIECE
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), mX.element_type, num_bits_per_copy=128)
    for turn in cutlass.range_constexpr(TILE * pieces // THREADS):
        r, p = (tidx + turn * THREADS) // pieces, (tidx + turn * THREADS) % pieces
        row = cutlass.min(first + r, rows - 1)
        column = tile * TILE_K + p * PIECE
        to = cute.local_tile(sX, (1, PIECE), (r, p))
        if cutlass.const_expr(k % PIECE == 0):
            if column < k:
                whole = cute.local_tile(mX, (1, PIECE), (row, column // PIECE))
                cute.copy(
                    atom,
                    cute.make_tensor(whole.iterator.align(16), cute.make_layout(PIECE)),
                    cute.make_tensor(to.iterator.align(16), cute.make_layout(PIECE)),
                )
            else:
                to.fill(0.0)
        else:
            for i in cutlass.range_constexpr(PIECE):
                value = mX.element_type(0.0)
                if column + i < k:
                    value = mX[row, column + i]
                to[0, i] = value


@cute.kernel
def matmul_kernel(
    mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tiled_mma: cute.TiledMma, load_a: cute.TiledCopy,
    load_b: cute.TiledCopy,
):  # fmt: skip
    tidx, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    m, k = mA.shape
    n = mB.shape[0]
    tiles = (k + TILE_K - 1) // TILE_K
    smem = cutlass.utils.SmemAllocator()
    stages = cute.make_layout((TILE, TILE_K, STAGES), stride=(PITCH, 1, TILE * PITCH))
    sA = smem.allocate_tensor(mA.element_type, stages, 16)
    sB = smem.allocate_tensor(mB.element_type, stages, 16)
    thread = tiled_mma.get_slice(tidx)
    tCrA = tiled_mma.make_fragment_A(thread.partition_A(sA[None, None, 0]))
    tCrB = tiled_mma.make_fragment_B(thread.partition_B(sB[None, None, 0]))
    acc = cute.make_rmem_tensor(tiled_mma.partition_shape_C((TILE, TILE)), cutlass.Float32)
    acc.fill(0.0)
    tAsA, tArA = load_a.get_slice(tidx).partition_S(sA), load_a.retile(tCrA)
    tBsB, tBrB = load_b.get_slice(tidx).partition_S(sB), load_b.retile(tCrB)

    for stage in cutlass.range_constexpr(STAGES - 1):
        if cutlass.const_expr(stage < tiles):
            fill(mA, sA[None, None, stage], by * TILE, stage, tidx)
            fill(mB, sB[None, None, stage], bx * TILE, stage, tidx)
        cute.arch.cp_async_commit_group()
    for tile in range(tiles):
        cute.arch.cp_async_wait_group(STAGES - 2)
        cute.arch.sync_threads()
        ahead = tile + STAGES - 1
        if ahead < tiles:
            fill(mA, sA[None, None, ahead % STAGES], by * TILE, ahead, tidx)
            fill(mB, sB[None, None, ahead % STAGES], bx * TILE, ahead, tidx)
        cute.arch.cp_async_commit_group()
        for step in cutlass.range_constexpr(TILE_K // 16):
            cute.copy(load_a, tAsA[None, None, step, tile % STAGES], tArA[None, None, step])
            cute.copy(load_b, tBsB[None, None, step, tile % STAGES], tBrB[None, None, step])
            cute.gemm(tiled_mma, acc, tCrA[None, None, step], tCrB[None, None, step], acc)

    places = thread.partition_C(cute.make_identity_tensor((TILE, TILE)))
    for i in cutlass.range_constexpr(cute.size(acc)):
        row, column = by * TILE + places[i][0], bx * TILE + places[i][1]
        if row < m and column < n:
            mC[row, column] = acc[i].to(mC.element_type)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream):
    op = warp.MmaF16BF16Op(a.element_type, cutlass.Float32, (16, 8, 16))
    tiled_mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    matrices = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), a.element_type)
    load_a = cute.make_tiled_copy_A(matrices, tiled_mma)
    load_b = cute.make_tiled_copy_B(matrices, tiled_mma)
    m, n = c.shape
    matmul_kernel(a, b, c, tiled_mma, load_a, load_b).launch(
        grid=[(n + TILE - 1) // TILE, (m + TILE - 1) // TILE, 1], block=[THREADS, 1, 1], stream=stream
    )

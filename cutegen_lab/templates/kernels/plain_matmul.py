"""Matrix products by FMAs from shared memory, for operands of any layout.

For small products, and for operands that TMA or the tensor cores cannot take.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
from cutlass import Float32

from cutegen_lab.templates.kernels.device.epilogue_access import fetch, put
from cutegen_lab.templates.kernels.device.overlap import OVERLAP, overlapping, start_next_and_wait


def epilogue(acc):
    """Placeholder, replaced in a generated module: a function of one fp32 vector per pair, ``extras`` and ``sizes``."""
    return acc


@cute.jit
def multiply_plainly(
    mAs: tuple,
    mBs: tuple,
    mC: cute.Tensor,
    extras: tuple,
    stream: cuda.CUstream,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
):
    """``mC`` (m, n, batch): epilogue of products ``pairs`` of ``mAs`` (m, k, batch) and ``mBs`` (n, k, batch)."""
    m, n, batches = (cute.size(mC, mode=[d]) for d in range(3))
    dense_in_k = tuple(tuple(x.stride[1] == 1 for x in side) for side in (mAs, mBs))
    plain_kernel(mAs, mBs, mC, extras, sizes, pairs, dense_in_k).launch(
        grid=[cute.ceil_div(m, 64) * cute.ceil_div(n, 64) * batches, 1, 1],
        block=[256, 1, 1],
        stream=stream,
        use_pdl=OVERLAP and overlapping(),
    )


@cute.kernel
def plain_kernel(
    mAs: tuple,
    mBs: tuple,
    mC: cute.Tensor,
    extras: tuple,
    sizes: cutlass.Constexpr,
    pairs: cutlass.Constexpr,
    dense_in_k: cutlass.Constexpr,
):
    """A block computes a 64×64 tile, a thread 4×4 of it, in steps of 16 along k, one product after another."""
    if cutlass.const_expr(OVERLAP and overlapping()):
        start_next_and_wait()
    m, n = cute.size(mC, mode=[0]), cute.size(mC, mode=[1])
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    high, wide = cute.ceil_div(m, 64), cute.ceil_div(n, 64)
    row, column, batch = bidx % high * 64, bidx // high % wide * 64, bidx // (high * wide)
    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(Float32, cute.make_layout((64, 16), stride=(1, 68)), 16)
    sB = smem.allocate_tensor(Float32, cute.make_layout((64, 16), stride=(1, 68)), 16)
    tA = cute.local_tile(sA, (4, 16), (tidx // 16, 0))
    tB = cute.local_tile(sB, (4, 16), (tidx % 16, 0))
    rA, rB = (cute.make_rmem_tensor(4, Float32) for _ in range(2))
    accs = [cute.make_rmem_tensor(16, Float32) for _ in pairs]  # 4×4, row-major
    for p in cutlass.range_constexpr(len(pairs)):
        acc, (left, right) = accs[p], pairs[p]
        k = cute.size(mAs[left], mode=[1])
        acc.fill(0.0)
        for start in cutlass.range(0, k, 16, unroll=1):
            load_slab(mAs[left], sA, row, start, batch, m, k, dense_in_k[0][left])
            load_slab(mBs[right], sB, column, start, batch, n, k, dense_in_k[1][right])
            cute.arch.sync_threads()
            for step in cutlass.range_constexpr(16):
                cute.autovec_copy(tA[None, step], rA)
                cute.autovec_copy(tB[None, step], rB)
                for i in cutlass.range_constexpr(4):
                    for j in cutlass.range_constexpr(4):
                        acc[4 * i + j] = acc[4 * i + j] + rA[i] * rB[j]
            cute.arch.sync_threads()
    cC = cute.local_tile(cute.make_identity_tensor((64, 64)), (4, 4), (tidx // 16, tidx % 16))
    cC = cute.make_tensor(cC.iterator, cute.select(cC.layout, mode=[1, 0]))
    result = epilogue(
        *[acc.load() for acc in accs],
        *[fetch(x, cC, row, column, batch, (m, n), False) for x in extras],
        *sizes,
    )
    rC = cute.make_rmem_tensor(16, mC.element_type)
    rC.store(result.to(mC.element_type))
    put(rC, mC, cC, row, column, batch, (m, n))


@cute.jit
def load_slab(
    mX: cute.Tensor,
    sX: cute.Tensor,
    row: cutlass.Int32,
    start: cutlass.Int32,
    batch: cutlass.Int32,
    rows: cutlass.Constexpr,
    k: cutlass.Constexpr,
    dense_in_k: cutlass.Constexpr,
):
    """Loads 64 rows × 16 of k as fp32, zeros past the edge. Neighbouring threads read neighbours in memory."""
    tidx, _, _ = cute.arch.thread_idx()
    for turn in cutlass.range_constexpr(4):
        at = tidx + turn * 256
        i, j = (at // 16, at % 16) if cutlass.const_expr(dense_in_k) else (at % 64, at // 64)
        value = Float32(0.0)
        if row + i < rows and start + j < k:
            value = Float32(mX[row + i, start + j, batch])
        sX[i, j] = value

"""Reductions over the blocks of a cluster that share rows, through distributed shared memory."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutegen_lab.templates.kernels.device.row_reduce import pairwise, values_of


@cute.jit
def exchange(
    rValue: cute.Tensor,
    parts: cute.Tensor,
    arrived: cute.Pointer,
    phase: cutlass.Int32,
    rank: cutlass.Int32,
    threads_per_row: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
):
    """Sends a row's values from each block of a cluster to all, through distributed shared memory, and waits until all
    of ``parts`` (blocks, values, rows per block) has arrived. Returns (blocks, values) of the thread's row."""
    tidx, _, _ = cute.arch.thread_idx()
    lane = tidx % threads_per_row
    local_row = tidx // threads_per_row
    bits = cute.recast_tensor(rValue, cutlass.Int32)  # st.async stores 32-bit integers
    if tidx == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, cute.size(parts) * 4)
    if lane < cluster_n:
        for i in cutlass.range_constexpr(cute.size(bits)):
            dst = cute.domain_offset((rank, i, local_row), parts).iterator
            cute.arch.store_async_dsmem(dst, bits[i], arrived, lane)
    cute.arch.mbarrier_wait(arrived, phase)
    return parts[None, None, local_row]


@cute.jit
def cluster_reduce(
    value: Float32,
    parts: cute.Tensor,
    arrived: cute.Pointer,
    phase: cutlass.Int32,
    rank: cutlass.Int32,
    op: cutlass.Constexpr,
    threads_per_row: cutlass.Constexpr,
    cluster_n: cutlass.Constexpr,
):
    """Reduces one value per row over the blocks of a cluster."""
    rValue = cute.make_rmem_tensor(cute.make_layout(1), Float32)
    rValue[0] = value
    sent = exchange(rValue, parts, arrived, phase, rank, threads_per_row, cluster_n)
    return pairwise(values_of(sent[None, 0]), op)

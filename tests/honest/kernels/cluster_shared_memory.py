"""Row sums by clusters of four blocks: each adds its quarter, and the first reads the others' shared memory.

Odd: blocks read memory of other blocks, which have to stay alive for it, by an instruction written as PTX. Legal: two
cluster barriers see to the former, and PTX is executed like everything else.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

CLUSTER, THREADS = 4, 128


@cute.kernel
def sum_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    _, row, _ = cute.arch.block_idx()
    rank = cute.arch.block_idx_in_cluster()
    n = mX.shape[1]
    smem = cutlass.utils.SmemAllocator()
    sums = smem.allocate_tensor(cutlass.Float32, cute.make_layout(THREADS // 32), 16)
    mine = smem.allocate_tensor(cutlass.Float32, cute.make_layout(1), 16)
    total = cutlass.Float32(0.0)
    for c in range(rank * THREADS + tidx, n, CLUSTER * THREADS):
        total += mX[row, c]
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    if tidx % 32 == 0:
        sums[tidx // 32] = total
    cute.arch.sync_threads()
    if tidx == 0:
        mine[0] = sums[0] + sums[1] + sums[2] + sums[3]
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    if rank == 0 and tidx == 0:
        total = mine[0]
        for other in cutlass.range_constexpr(1, CLUSTER):
            address = cute.arch.map_dsmem_ptr(mine.iterator, other)
            # The DSL's own loads refuse pointers into another block's shared memory, so the load is written as PTX.
            total += cute.arch.inline_ptx(
                "ld.shared::cluster.f32 {$w0}, [{$r0}];",
                write_only_types=[cutlass.Float32],
                read_only_args=[address.toint()],
            )
        mY[row] = total
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    sum_kernel(x, y).launch(
        grid=[CLUSTER, x.shape[0], 1], block=[THREADS, 1, 1], cluster=[CLUSTER, 1, 1], stream=stream
    )

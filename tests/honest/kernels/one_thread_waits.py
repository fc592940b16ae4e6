"""A copy by TMA for which one thread waits; the others wait for that one at the block's barrier.

Odd: threads of a warp come apart to bar.sync. Legal: each of them executes it (PTX ISA 9.7.13.1), and the barrier
orders what the one thread has seen before what the others read.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.experimental.cuda as maps
from cutlass.experimental import primitives as prims

ROWS, COLUMNS = 8, 64
THREADS = 64


@cute.kernel
def copy_kernel(source: cutlass.GridConstant[maps.TensorMap], out: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    across, down, _ = cute.arch.block_idx()
    tile = cutlass.Array(cutlass.Float16, ROWS * COLUMNS, space=cutlass.AddressSpace.smem, alignment=128)
    barrier = cutlass.Array(cutlass.Int64, 1, space=cutlass.AddressSpace.smem, alignment=8)
    if tidx == 0:
        prims.mbarrier_init(barrier, 1)
    prims.fence_mbarrier_init()
    prims.barrier_cta_sync(0)
    if tidx == 0:
        prims.mbarrier_arrive_expect_tx(barrier, source.global_tx_bytes())
        prims.cp_async_bulk_tensor_shared_cta_global(tile, source.get_ptr(), (across * COLUMNS, down * ROWS), barrier)
        while not prims.mbarrier_try_wait_parity(barrier, 0, time_limit=10_000_000):
            pass
    cute.arch.sync_threads()
    held = tile.data_ptr()
    for i in cutlass.range(tidx, ROWS * COLUMNS, THREADS):
        row, column = down * ROWS + i // COLUMNS, across * COLUMNS + i % COLUMNS
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = (held + i).load() * cutlass.Float16(2.0)


def constraints(config, workload, device):
    return workload.inputs[0].shape[1] % 8 == 0  # rows of a tensor map are multiples of 16 bytes


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    rows, columns = x.shape
    source = maps.create_tensor_map_tiled(
        global_address=x.iterator.toint(),
        dtype=cutlass.Float16,
        global_dims=[columns, rows],
        global_strides=[columns * 2 // 16],
        box_dims=[COLUMNS, ROWS],
    )
    grid = [cute.ceil_div(columns, COLUMNS), cute.ceil_div(rows, ROWS), 1]
    copy_kernel(source, out).launch(grid=grid, block=[THREADS, 1, 1], stream=stream)

"""A copy by TMA for which one lane of each warp waits; then each half of a warp meets the other at its own sync_warp.

Odd: lanes wait for each other at different instructions. Legal: bar.warp.sync waits for lanes that execute one with the
same mask (PTX ISA 9.7.13.2), and orders what they did.
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
    side = cutlass.Array(cutlass.Int32, 128, space=cutlass.AddressSpace.smem, alignment=16)
    if tidx == 0:
        prims.mbarrier_init(barrier, 1)
    prims.fence_mbarrier_init()
    prims.barrier_cta_sync(0)
    if tidx == 0:
        prims.mbarrier_arrive_expect_tx(barrier, source.global_tx_bytes())
        prims.cp_async_bulk_tensor_shared_cta_global(tile, source.get_ptr(), (across * COLUMNS, down * ROWS), barrier)
    if tidx % 32 == 0:
        while not prims.mbarrier_try_wait_parity(barrier, 0, time_limit=10_000_000):
            pass
    if tidx % 32 < 16:
        side[tidx] = cutlass.Int32(1)
        cute.arch.sync_warp()
    else:
        side[tidx] = cutlass.Int32(2)
        cute.arch.sync_warp()
        side[tidx + 64] = side[tidx - 16]
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

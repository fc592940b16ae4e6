"""Cumulative sum, one warp a row: a scan in registers and over the warp, with a carry from tile to tile.

Odd: tiles depend on each other, so the loop cannot be reordered. Legal: the carry is a register of the last lane.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

SHARE = 4  # adjacent elements a lane
TILE = 32 * SHARE


@cute.kernel
def scan_kernel(mX: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    n = mX.shape[1]
    carry = cutlass.Float32(0.0)
    values = cute.make_rmem_tensor(cute.make_layout(SHARE), cutlass.Float32)
    for tile in range((n + TILE - 1) // TILE):
        first = tile * TILE + lane * SHARE
        running = cutlass.Float32(0.0)
        for i in cutlass.range_constexpr(SHARE):
            if first + i < n:
                running += mX[row, first + i]
            values[i] = running
        scanned = running
        for step in cutlass.range_constexpr(5):
            before = cute.arch.shuffle_sync_up(scanned, 1 << step)
            if lane >= (1 << step):
                scanned += before
        before = cute.arch.shuffle_sync_up(scanned, 1)
        offset = carry + (before if lane > 0 else cutlass.Float32(0.0))
        for i in cutlass.range_constexpr(SHARE):
            if first + i < n:
                mY[row, first + i] = values[i] + offset
        carry += cute.arch.shuffle_sync(scanned, 31)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    scan_kernel(x, y).launch(grid=[x.shape[0], 1, 1], block=[32, 1, 1], stream=stream)

"""An online softmax that takes eight numbers at a time: where all of a tile are -inf, the running maximum is too, and
-inf - (-inf) makes NaN of the whole row. What an additive mask hides is often longer than a tile.

problem: torch.softmax(x, -1) for x: f32[40,96]
class: tests for the distribution's moments
defence: a draw in which a mask of tiles, beginnings, ends and single places hides parts of rows by -inf
verdicts: wrong_result
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

TILE = 8


@cute.kernel
def softmax_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    row = bidx * 32 + tidx
    n = mX.shape[1]
    if row < mX.shape[0]:
        peak, total = cutlass.Float32(-float("inf")), cutlass.Float32(0.0)
        for first in range(0, n, TILE):
            new = peak
            for c in range(first, min(first + TILE, n)):
                new = cute.arch.fmax(new, mX[row, c], nan=True)
            total *= cute.math.exp(peak - new)
            for c in range(first, min(first + TILE, n)):
                total += cute.math.exp(mX[row, c] - new)
            peak = new
        for c in range(n):
            mY[row, c] = cute.math.exp(mX[row, c] - peak) / total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    softmax_kernel(x, y).launch(grid=[(x.shape[0] + 31) // 32, 1, 1], block=[32, 1, 1], stream=stream)

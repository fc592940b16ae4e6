"""Column sums in two launches: slices of rows into a declared workspace, then the slices' sums.

Odd: the second kernel reads memory that is neither an input nor an output. Legal: the workspace is declared, and every
element the second kernel reads was written by the first in the same call.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

TUNABLE = {"slices": (4, 16, 64)}


def workspace(workload, config):
    return [("part", "f32", (config["slices"], workload.inputs[0].shape[1]))]


@cute.kernel
def partial_kernel(mX: cute.Tensor, mP: cute.Tensor, slices: cutlass.Constexpr, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, part, _ = cute.arch.block_idx()
    c = bidx * threads + tidx
    if c < mX.shape[1]:
        total = cutlass.Float32(0.0)
        for r in range(part, mX.shape[0], slices):
            total += mX[r, c]
        mP[part, c] = total


@cute.kernel
def final_kernel(mP: cute.Tensor, mY: cute.Tensor, slices: cutlass.Constexpr, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    c = bidx * threads + tidx
    if c < mY.shape[0]:
        total = cutlass.Float32(0.0)
        for part in cutlass.range_constexpr(slices):
            total += mP[part, c]
        mY[c] = total


@cute.jit
def launch(
    x: cute.Tensor,
    y: cute.Tensor,
    part: cute.Tensor,
    stream: cuda.CUstream,
    slices: cutlass.Constexpr = 16,
    threads: cutlass.Constexpr = 64,
):
    blocks = (x.shape[1] + threads - 1) // threads
    partial_kernel(x, part, slices, threads).launch(grid=[blocks, slices, 1], block=[threads, 1, 1], stream=stream)
    final_kernel(part, y, slices, threads).launch(grid=[blocks, 1, 1], block=[threads, 1, 1], stream=stream)

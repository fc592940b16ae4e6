"""Sums columns in slices over a workspace, and leaves one slice of the workspace unwritten when rows run out.

problem: x.sum(0) for x: f32[100,64]
class: reads stale output
defence: workspace starts poisoned each call, and reading what this call has not written is a fault
verdicts: uninitialised_read, wrong_result, non_deterministic
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

SLICES = 8


def workspace(workload, config):
    return [("part", "f32", (SLICES, workload.inputs[0].shape[-1]))]


@cute.kernel
def partial_kernel(mX: cute.Tensor, mP: cute.Tensor, rows: cutlass.Constexpr):
    c, _, _ = cute.arch.thread_idx()
    part, _, _ = cute.arch.block_idx()
    if (part + 1) * rows <= mX.shape[0]:
        total = cutlass.Float32(0.0)
        for r in range(rows):
            total += mX[part * rows + r, c]
        mP[part, c] = total


@cute.kernel
def final_kernel(mP: cute.Tensor, mY: cute.Tensor):
    c, _, _ = cute.arch.thread_idx()
    total = cutlass.Float32(0.0)
    for part in cutlass.range_constexpr(SLICES):
        total += mP[part, c]
    mY[c] = total


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, part: cute.Tensor, stream: cuda.CUstream):
    rows = (x.shape[0] + SLICES - 1) // SLICES
    partial_kernel(x, part, rows).launch(grid=[SLICES, 1, 1], block=[x.shape[1], 1, 1], stream=stream)
    final_kernel(part, y).launch(grid=[1, 1, 1], block=[x.shape[1], 1, 1], stream=stream)

"""The range of each row, with tunables, constraints on them and a workspace whose size follows from them.

Odd: ``constraints`` and ``workspace`` are candidate code that runs on the host. Legal: they see shapes, never data.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

TUNABLE = {"parts": (1, 2, 4, 8), "threads": (32, 64)}


def constraints(config, workload, device):
    return config["parts"] * config["threads"] <= device.max_threads_per_block


def workspace(workload, config):
    return [("extremes", "f32", (workload.inputs[0].shape[0], config["parts"], 2))]


@cute.kernel
def part_kernel(mX: cute.Tensor, mE: cute.Tensor, parts: cutlass.Constexpr, threads: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    row, part, _ = cute.arch.block_idx()
    n = mX.shape[1]
    share = (n + parts - 1) // parts
    most = cutlass.Float32(-float("inf"))
    least = cutlass.Float32(float("inf"))
    for c in range(part * share + tidx % 32, cutlass.min((part + 1) * share, n), 32):
        most = cute.arch.fmax(most, mX[row, c], nan=True)
        least = cute.arch.fmin(least, mX[row, c], nan=True)
    most = cute.arch.warp_reduction(most, lambda a, b: cute.arch.fmax(a, b, nan=True))
    least = cute.arch.warp_reduction(least, lambda a, b: cute.arch.fmin(a, b, nan=True))
    if tidx == 0:
        mE[row, part, 0] = most
        mE[row, part, 1] = least


@cute.kernel
def range_kernel(mE: cute.Tensor, mY: cute.Tensor, parts: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    most, least = mE[row, 0, 0], mE[row, 0, 1]
    for part in cutlass.range_constexpr(1, parts):
        most = cute.arch.fmax(most, mE[row, part, 0], nan=True)
        least = cute.arch.fmin(least, mE[row, part, 1], nan=True)
    mY[row] = most - least


@cute.jit
def launch(
    x: cute.Tensor,
    y: cute.Tensor,
    extremes: cute.Tensor,
    stream: cuda.CUstream,
    parts: cutlass.Constexpr = 4,
    threads: cutlass.Constexpr = 64,
):
    rows = x.shape[0]
    part_kernel(x, extremes, parts, threads).launch(grid=[rows, parts, 1], block=[threads, 1, 1], stream=stream)
    range_kernel(extremes, y, parts).launch(grid=[rows, 1, 1], block=[1, 1, 1], stream=stream)

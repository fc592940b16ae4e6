"""Seconds for 20 configs of one template through the warm pool, beside compiling each in a fresh process.

python -m benchmarks.compile_pool [CONFIGS] [WORKERS]
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from benchmarks.harness import ARCH, command_line, quiet, required, seconds
from cutegen_lab.compile import CageCompiler, CompileJob
from cutegen_lab.core.problem import TensorSpec, Workload

TEMPLATE = """\
import cutlass
import cutlass.cute as cute
import cuda.bindings.driver as cuda


@cute.kernel
def row_kernel(x: cute.Tensor, y: cute.Tensor, threads: cutlass.Constexpr, vec: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    steps = x.shape[1] // (threads * vec)
    layout = cute.make_layout((vec, threads, steps), stride=(1, vec, vec * threads))
    tX = cute.make_tensor(x[row, None].iterator, layout)[None, tidx, None]
    tY = cute.make_tensor(y[row, None].iterator, layout)[None, tidx, None]
    rX = cute.make_fragment_like(tX)
    cute.autovec_copy(tX, rX)
    e = cute.math.exp2(rX.load().to(cutlass.Float32) * 1.4426950408889634, fastmath=True)
    s = cute.arch.warp_reduction(e.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0), lambda a, b: a + b)
    rY = cute.make_fragment_like(tY)
    rY.store((e * (1.0 / s)).to(y.element_type))
    cute.autovec_copy(rY, tY)


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream,
           threads: cutlass.Constexpr = 256, vec: cutlass.Constexpr = 8):
    row_kernel(x, y, threads, vec).launch(grid=[x.shape[0], 1, 1], block=[threads, 1, 1], stream=stream)
"""


def build(compiler: CageCompiler, jobs: list[CompileJob]) -> None:
    for job, built in zip(jobs, compiler.compile_many(jobs, quiet), strict=True):
        required(str(job.config), built)


def main(configs: int = 20, workers: int = 2) -> None:
    spec = TensorSpec.parse
    work = Workload("main", (spec("x: bf16[4096,8192]"),), (spec("y: bf16[4096,8192]"),))
    every = [{"threads": t, "vec": v} for t in (32, 64, 128, 256, 512) for v in (1, 2, 4, 8)]
    jobs = [CompileJob(TEMPLATE, config, (work,), ARCH) for config in every[:configs]]
    with tempfile.TemporaryDirectory() as folder:
        with CageCompiler(Path(folder, "pool"), workers) as compiler:
            pooled = seconds(lambda: build(compiler, jobs))
            hit = seconds(lambda: build(compiler, jobs)) / len(jobs)

        def alone(number: int) -> None:
            with CageCompiler(Path(folder, f"cold{number}"), 1) as compiler:
                build(compiler, jobs[number : number + 1])

        cold = [seconds(partial(alone, number)) for number in range(len(jobs[:3]))]
    sequential = sum(cold) / len(cold) * len(jobs)
    print(f"{len(jobs)} configs, {workers} workers, cold start included: {pooled:.2f} s")
    print(f"one process each, in sequence (from {len(cold)} measured): {sequential:.2f} s, {sequential / pooled:.1f}x")
    print(f"a cache hit: {hit * 1e3:.2f} ms")


if __name__ == "__main__":
    command_line(main)

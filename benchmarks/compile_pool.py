"""Seconds for 20 configs of one template through the warm pool, beside compiling each in a fresh process.

python -m benchmarks.compile_pool [CONFIGS] [WORKERS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from cutegen_lab.compile import CageCompiler, CompileJob
from cutegen_lab.core.artifact import Artifact
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


def main(count: int = 20, workers: int = 2) -> None:
    spec = TensorSpec.parse
    work = Workload("main", (spec("x: bf16[4096,8192]"),), (spec("y: bf16[4096,8192]"),))
    configs = [{"threads": t, "vec": v} for t in (32, 64, 128, 256, 512) for v in (1, 2, 4, 8)][:count]
    jobs = [CompileJob(TEMPLATE, config, (work,), "sm_90a") for config in configs]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        with CageCompiler(Path(folder, "pool"), workers) as compiler:
            results = compiler.compile_many(jobs, lambda _: None)
            pooled = time.perf_counter() - started
            failed = [r for r in results if not isinstance(r, Artifact)]
            if failed:
                raise SystemExit(f"a config did not compile: {failed[0]}")
            started = time.perf_counter()
            compiler.compile_many(jobs, lambda _: None)
            hit = (time.perf_counter() - started) / len(jobs)
        cold = []
        for job in jobs[:3]:
            started = time.perf_counter()
            with CageCompiler(Path(folder, f"cold{len(cold)}"), 1) as compiler:
                compiler.compile_many([job], lambda _: None)
            cold.append(time.perf_counter() - started)
    sequential = sum(cold) / len(cold) * len(jobs)
    print(f"{len(jobs)} configs, {workers} workers, cold start included: {pooled:.2f} s")
    print(f"one process each, in sequence (from {len(cold)} measured): {sequential:.2f} s, {sequential / pooled:.1f}x")
    print(f"a cache hit: {hit * 1e3:.2f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

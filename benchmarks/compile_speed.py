"""Seconds of reading and compiling, each compared with another way to do the same in this run.

    python -m benchmarks.compile_speed [CONFIGS] [WORKERS]   (needs the DSL; no GPU)

A reference read for the templates, and by PyTorch's own decomposition of every composite operator. A kernel built for
ten workloads in one process, and in a process each. CONFIGS of a softmax through the pool of warm processes, and each
in a fresh process.
"""

from __future__ import annotations

import random
import tempfile
from functools import partial
from pathlib import Path
from statistics import fmean, median
from unittest import mock

from benchmarks.harness import ARCH, command_line, compiled, default_kernel, quiet, required, say, seconds
from cutegen_lab.bench.case import problem_of
from cutegen_lab.compile import CageCompiler, CompileJob
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.session.tune import from_template
from cutegen_lab.templates.frontend import program
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.frontend.steps import IN_STEPS

PROBLEM = problem_of("softmax", "torch.softmax(x, -1)", "x: f32[64,512]")
ROUNDS, FRESH = 5, 3  # of both ways in turns; fresh processes measured


def reading() -> None:
    ours, whole = [], []
    read(PROBLEM)
    for _ in range(ROUNDS):
        ours.append(seconds(lambda: read(PROBLEM)))
        with mock.patch.object(program, "decomposed", lambda exported: exported.run_decompositions(IN_STEPS)):
            whole.append(seconds(lambda: read(PROBLEM)))
    told("a softmax read", median(ours), "by PyTorch's own run_decompositions", median(whole))


def workloads_together() -> None:
    text, _ = default_kernel(PROBLEM)
    workloads = [
        Workload(f"w{n}", (TensorSpec.parse(f"x: f32[64,{n}]"),), (TensorSpec.parse(f"y: f32[64,{n}]"),))
        for n in range(512, 522)
    ]
    together, apart = [], []
    with tempfile.TemporaryDirectory() as folder, CageCompiler(Path(folder), workers=1) as compiler:

        def build(number: int, *parts: list[Workload]) -> None:
            for some in parts:
                required("softmax", compiled(compiler, f"{text}\n# {number}\n", {}, some))

        build(-1, workloads[:1])
        for number in range(ROUNDS):
            together.append(seconds(partial(build, 2 * number, workloads)))
            apart.append(seconds(partial(build, 2 * number + 1, *([each] for each in workloads))))
    told("ten workloads built together", median(together), "one by one", median(apart))


def configs_in_a_pool(configs: int, workers: int) -> None:
    tunable = from_template(PROBLEM, ARCH)
    chosen = random.Random(0).sample(tunable.space.configs, configs)  # noqa: S311 - the same every time
    jobs = [CompileJob(tunable.source, config, (PROBLEM.workload,), ARCH) for config in chosen]

    def build(compiler: CageCompiler, some: list[CompileJob]) -> None:
        for job, built in zip(some, compiler.compile_many(some, quiet), strict=True):
            required(str(job.config), built)

    with tempfile.TemporaryDirectory() as folder:

        def alone(number: int) -> None:
            with CageCompiler(Path(folder, f"fresh{number}"), 1) as compiler:
                build(compiler, jobs[number : number + 1])

        with CageCompiler(Path(folder, "pool"), workers) as compiler:
            pooled = seconds(lambda: build(compiler, jobs))  # the start of its processes included
            cached = seconds(lambda: build(compiler, jobs)) / len(jobs)
        fresh = fmean(seconds(partial(alone, number)) for number in range(len(jobs[:FRESH])))
    told(f"{len(jobs)} configs, {workers} workers", pooled, "a fresh process each, in sequence", fresh * len(jobs))
    say(f"a build from the cache: {cached * 1e3:.2f} ms")


def told(what: str, ours_s: float, other: str, theirs_s: float) -> None:
    say(f"{what}: {ours_s:.2f} s; {other}: {theirs_s:.2f} s, {theirs_s / ours_s:.1f}x")


def main(configs: int = 20, workers: int = 2) -> None:
    reading()
    workloads_together()
    configs_in_a_pool(configs, workers)


if __name__ == "__main__":
    command_line(main)

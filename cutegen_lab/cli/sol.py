"""``cutegen sol PROBLEM.py``: lower bound on time, and the workloads of checks, before a kernel exists."""

from __future__ import annotations

import argparse
from dataclasses import replace

from cutegen_lab.cli.facts import label_facts, sol_facts
from cutegen_lab.cli.output import Output
from cutegen_lab.core.roofline import speed_of_light, target_gpu
from cutegen_lab.views.units import microseconds


def execute(arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.problems import read_file

    problem = read_file(arguments.problem, inputs_text=arguments.inputs)
    gpu = target_gpu(arguments.arch, arguments.gpu)
    rows = []
    if problem.label:
        output.line(f"{problem.name}: {problem.label}")
    for number, workload in enumerate(problem.workloads):
        # FLOPs of matrix products are known for the main workload; other bounds use bytes only.
        alone = replace(problem, workloads=(workload,), flops=0 if number else problem.flops)
        sol = speed_of_light(alone, gpu)
        copy_us = workload.compulsory_bytes / gpu.copy_bytes_per_s * 1e6
        rows.append({"workload": workload.name, "tensors": workload.describe(), **sol_facts(sol), "copy_us": copy_us})
        output.line(f"{problem.name} {workload.name}: {workload.describe()}")
        output.line(f"  compulsory traffic  {workload.compulsory_bytes:,} B")
        output.line(f"  matrix FLOPs        {sol.flops:,}")
        output.line(f"  memory bound        {microseconds(sol.memory_us)} at {gpu.dram_bytes_per_s / 1e12:.2f} TB/s")
        output.line(f"  compute bound       {microseconds(sol.compute_us)}")
        output.line(f"  speed of light      {microseconds(sol.time_us)} on {sol.gpu}, set by {sol.limiter}")
        output.line(f"  a copy of the same  {microseconds(copy_us)} at {gpu.copy_bytes_per_s / 1e12:.2f} TB/s")
    if problem.check_workloads:
        output.line("a kernel is checked also at these shapes:")
    for workload in problem.check_workloads:
        output.line(f"  {workload.name:<19} {workload.describe()}")
    output.result(
        {
            "problem": problem.name,
            **label_facts(problem),
            "gpu": gpu.name,
            "arch": gpu.arch,
            **rows[0],
            "workloads": rows,
            "checked_also_at": {w.name: w.describe() for w in problem.check_workloads},
        }
    )
    return 0

"""``cutegen sol PROBLEM.py``: bounds and reachable times, and the workloads of checks, before a kernel exists."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cutegen_lab.cli.facts import label_facts, sol_facts
from cutegen_lab.cli.output import Output
from cutegen_lab.core.floors import Floors, Precision, floors
from cutegen_lab.core.operations import Execution
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.roofline import GPUS, GpuSpec, target_gpu
from cutegen_lab.views.units import microseconds, plural, prefixed

ALL = "all"  # value of --gpu for a table of all GPUs


def execute(arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.problems import read_file
    from cutegen_lab.problems.executed import execution

    every = arguments.gpu.lower() == ALL
    gpus = list(GPUS.values()) if every else [target_gpu(arguments.arch, arguments.gpu)]
    problem = read_file(arguments.problem, inputs_text=arguments.inputs)
    if problem.label:
        output.line(f"{problem.name}: {problem.label}")
    rows = []
    for workload in problem.workloads:
        executed = execution(problem, workload)
        found = [floors(problem, workload, executed, gpu) for gpu in gpus]
        rows.append(_facts(workload, executed, found))
        output.line(f"{problem.name} {workload.name}: {workload.describe()}")
        shown = [*_traffic(executed, found[0]), *(_gpu_table(found) if every else _times(executed, found[0]))]
        for line in shown:
            output.line(f"  {line}")
    if problem.check_workloads:
        output.line("a kernel is checked also at these shapes:")
    for workload in problem.check_workloads:
        output.line(f"  {workload.name:<19} {workload.describe()}")
    output.result(_result(problem, gpus, rows))
    return 0


def _traffic(executed: Execution, found: Floors) -> list[str]:
    """Bytes and operations, which are the same on every GPU."""
    lines = [f"compulsory traffic  {found.bound.compulsory_bytes:,} B"]
    lines.append(f"matrix FLOPs        {found.bound.flops:,}")
    if executed.vector_operations or executed.special_functions:
        lines.append(
            f"vector arithmetic   {executed.vector_operations:,} operations, {executed.special_functions:,} special "
            f"functions: {microseconds(found.vector_us)} on {found.gpu.name} (in no bound)"
        )
    return lines


def _times(executed: Execution, found: Floors) -> list[str]:
    """Bounds and reachable times on one GPU."""
    gpu, bound, unfused = found.gpu, found.bound, found.unfused
    operators = plural(len(executed.operations), "operator")
    return [
        f"memory bound        {microseconds(bound.memory_us)} at {gpu.dram_bytes_per_s / 1e12:.2f} TB/s",
        f"compute bound       {microseconds(bound.compute_us)}",
        f"speed of light      {microseconds(bound.time_us)} on {bound.gpu}, set by {bound.limiter}",
        f"a copy of the same  {microseconds(found.copy_us)} at {gpu.copy_bytes_per_s / 1e12:.2f} TB/s",
        f"reachable floor     {microseconds(found.fused.floor_us)} in one kernel, set by {found.fused.limiter}",
        f"unfused             {operators} of eager PyTorch, {executed.bytes_moved:,} B: bound "
        f"{microseconds(unfused.bound_us)}, floor {microseconds(unfused.floor_us)}, set by {unfused.limiter}",
        *_precision_table(found.precisions),
    ]


def _precision_table(precisions: Sequence[Precision]) -> list[str]:
    if not precisions:
        return []
    rows = [("", "operands", "peak", "compute", "bound", "floor", "unfused floor")]
    for found in precisions:
        rows.append((
            found.change, found.name, f"{prefixed(found.peak_flops_per_s)}FLOP/s", microseconds(found.compute_us),
            microseconds(found.fused.bound_us), microseconds(found.fused.floor_us),
            microseconds(found.unfused.floor_us),
        ))  # fmt: skip
    return _aligned(rows)


def _gpu_table(found: Sequence[Floors]) -> list[str]:
    rows = [("GPU", "DRAM", "copy", "bound", "set by", "floor", "set by", "unfused floor", "set by", "copy rate")]
    for each in found:
        gpu = each.gpu
        rows.append((
            gpu.name, f"{prefixed(gpu.dram_bytes_per_s)}B/s", f"{prefixed(gpu.copy_bytes_per_s)}B/s",
            microseconds(each.bound.time_us), each.bound.limiter, microseconds(each.fused.floor_us),
            each.fused.limiter, microseconds(each.unfused.floor_us), each.unfused.limiter, gpu.copy_source,
        ))  # fmt: skip
    return _aligned(rows)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _facts(workload: Workload, executed: Execution, found: Sequence[Floors]) -> dict[str, Any]:
    """One workload's numbers, with those of the first GPU at the top."""
    first = found[0]
    return {
        "workload": workload.name,
        "tensors": workload.describe(),
        **_gpu_facts(first),
        "input_bytes_read": {spec.name: spec.compulsory_bytes for spec in workload.inputs},
        "vector_operations": executed.vector_operations,
        "special_functions": executed.special_functions,
        "unfused_bytes": executed.bytes_moved,
        "operators": [{**asdict(each), "count": count} for each, count in Counter(executed.operations).items()],
        "gpus": [_gpu_facts(each) for each in found],
    }


def _gpu_facts(found: Floors) -> dict[str, Any]:
    return {
        **sol_facts(found.bound),
        "copy_us": found.copy_us,
        "vector_us": found.vector_us,
        "dram_bytes_per_s": found.gpu.dram_bytes_per_s,
        "copy_bytes_per_s": found.gpu.copy_bytes_per_s,
        "copy_source": found.gpu.copy_source,
        "fused": asdict(found.fused),
        "unfused": asdict(found.unfused),
        "precisions": [asdict(each) for each in found.precisions],
    }


def _result(problem: Problem, gpus: Sequence[GpuSpec], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "problem": problem.name,
        **label_facts(problem),
        **rows[0],
        "gpu": gpus[0].name,
        "arch": gpus[0].arch,
        "workloads": rows,
        "checked_also_at": {w.name: w.describe() for w in problem.check_workloads},
    }

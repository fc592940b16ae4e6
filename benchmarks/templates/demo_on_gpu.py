"""The demo's kernels on a real GPU: compiled here, replayed there with torch and the driver alone.

    python -m benchmarks.templates.demo_on_gpu prepare FOLDER   (needs the DSL; no GPU)
    python -m benchmarks.templates.demo_on_gpu run FOLDER OUT.json (needs a GPU and torch; no DSL)

``run`` judges each kernel at bf16[32768, 8192] and the small workloads on every distribution, then times it in turns
with eager PyTorch, torch.compile and a copy of the same bytes.
"""

from __future__ import annotations

import json
import threading
import warnings
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    ROOT,
    command_line,
    compiled,
    conditions,
    for_each,
    read_json,
    required,
    say,
    timing_facts,
    write_json,
)
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.roofline import GPUS, speed_of_light
from cutegen_lab.problems import read_file

PROBLEMS = {"softmax": "x: bf16[32768,8192]", "rmsnorm": "x: bf16[32768,8192], weight: bf16[8192]"}
JUDGED = 2  # of the configs: the provider's default, and one that reduces across a cluster; the others are only timed
CONFIGS = tuple(
    {"vec": 8, "threads_per_row": threads, "rows_per_block": rows, "cluster_n": cluster, "loads": 64}
    for threads, rows, cluster in ((256, 1, 1), (256, 1, 2), (128, 1, 1), (512, 1, 1), (1024, 1, 1), (256, 2, 1))
)
DEMO = ROOT / "cutegen_lab/demo"


def prepare(folder: Path) -> None:
    """Writes one artifact a problem and config."""
    from cutegen_lab.compile import CageCompiler
    from cutegen_lab.templates.frontend.reader import read
    from cutegen_lab.templates.registry import family_for

    def write(case: tuple[str, int], compiler: CageCompiler) -> None:
        (name, number), config = case, CONFIGS[case[1]]
        problem = read_file(DEMO / f"{name}.py", inputs_text=PROBLEMS[name])
        graph = read(problem)
        source = family_for(graph).write(problem, graph, config)
        built = compiled(compiler, source, config, (*problem.check_workloads, problem.workload))
        write_json(folder / f"{name}-{number}.json", required(f"{name} {config}", built).to_dict())

    for_each(product(PROBLEMS, range(len(CONFIGS))), folder, write)


def run(folder: Path, out: Path) -> None:
    """Judges and times what ``prepare`` wrote."""
    from cutegen_lab.devices.cuda import CudaDevice
    from cutegen_lab.judge import StandardJudge

    warnings.simplefilter("ignore")
    device, judge, cancel = CudaDevice(), StandardJudge(), threading.Event()
    rows: list[dict[str, Any]] = []
    for name, inputs in PROBLEMS.items():
        problem = read_file(DEMO / f"{name}.py", inputs_text=inputs)
        sol = speed_of_light(problem, GPUS["H200"])
        for number, config in enumerate(CONFIGS):
            artifact = Artifact.from_dict(read_json(folder / f"{name}-{number}.json"))
            row: dict[str, Any] = {"problem": name, "config": config, "sol_us": sol.time_us}
            if number < JUDGED:
                result = judge.check(problem, artifact, device, print, cancel)
                main = [e for c in result.checks if c.workload == "main" for e in c.errors]
                row |= {"verdict": result.verdict.value, "reason": result.reason, "checks": len(result.checks)}
                row["error"] = max((e.norm for e in main), default=None)
                row["torch_error"] = max((e.torch_norm for e in main), default=None)
            timing, _ = judge.time(problem, artifact, device, GPUS["H200"], print, cancel)
            row |= timing_facts(timing)
            rows.append(row)
            say(json.dumps(row))
    write_json(out, conditions(device.name), rows=rows)
    device.close()


if __name__ == "__main__":
    command_line(prepare, run)

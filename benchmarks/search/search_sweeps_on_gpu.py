"""Sweeps of template configs over several shapes on a real GPU, to replay searches on.

    python -m benchmarks.search.search_sweeps_on_gpu OUT.json [PROBLEM ...]   (needs the DSL, torch and a GPU)

Of each problem's space the default and a random sample are compiled, timed on every shape and predicted by the
emulator's model. Those that ptxas's figures rule out are left out, as a search does.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from loky import cpu_count

from benchmarks.harness import ARCH, command_line, compiled, conditions, say, write_configs
from benchmarks.search.tune_on_gpu import PROBLEMS, written
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.verdict import Fault

CONFIGS = {"softmax": 300, "gemm": 200, "rmsnorm": 200}
SAMPLES = 12


def main(out: Path, *problems: str) -> None:
    from cutegen_lab.session import Session

    sweeps: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, Session.open(Path(folder)) as session:
        device = session.services.device("cuda")
        for name in problems or CONFIGS:
            path = written(name, Path(folder))
            started = time.monotonic()
            sweeps[name] = {"inputs": PROBLEMS[name][1], **sweep(session, path, CONFIGS[name])}
            say(f"{name}: {len(sweeps[name]['rows'])} configs in {time.monotonic() - started:.0f} s")
            write_configs(out, conditions(device.name), sweeps)


def sweep(session: Any, path: Path, count: int) -> dict[str, Any]:
    from cutegen_lab.problems import read_file
    from cutegen_lab.session.config_timers import MeasuredTimer, PredictedTimer
    from cutegen_lab.session.factories import forks
    from cutegen_lab.session.tune import from_template
    from cutegen_lab.tuning import key
    from cutegen_lab.tuning.unpromising import unpromising

    problem: Problem = read_file(path)
    tunable = from_template(problem, ARCH)
    rest = [c for c in tunable.space.configs if c != tunable.space.default]
    configs = [tunable.space.default, *random.Random(0).sample(rest, min(count, len(rest)))]  # noqa: S311
    cancel, compiler, gpu = threading.Event(), session.services.compiler(), target_gpu(ARCH)
    model = PredictedTimer(problem, session.services.judge(), gpu, cancel, forks())

    def made(config: Config) -> Artifact | None:
        built = compiled(compiler, tunable.source, config, problem.workloads)
        if not isinstance(built, Artifact) or any(unpromising(b, ARCH) for b in built.builds.values()):
            return None
        model.prepare(problem.workloads, key(config), built)
        return built

    with ThreadPoolExecutor(cpu_count()) as pool:
        artifacts = {key(c): (c, a) for c, a in zip(configs, pool.map(made, configs), strict=True) if a is not None}
    timer = MeasuredTimer(problem, session.services.device("cuda"), "GPU", cancel)
    rows: dict[str, dict[str, Any]] = {
        n: {"config": dict(c), "us": [], "predicted_us": []} for n, (c, _) in artifacts.items()
    }
    for workload in problem.workloads:
        only = {n: a for n, (_, a) in artifacts.items()}
        for name, timing in model.time(workload, only, 1):
            rows[name]["predicted_us"].append(None if isinstance(timing, Fault) else round(timing[0], 2))
        for name, times in timer.time(workload, only, SAMPLES):
            rows[name]["us"].append(None if isinstance(times, Fault) else round(median(times), 3))
    timer.close()
    model.close()
    return {"of": len(tunable.space.configs), "domains": {n: list(d) for n, d in tunable.space.domains.items()},
            "rows": list(rows.values())}  # fmt: skip


if __name__ == "__main__":
    command_line(main)

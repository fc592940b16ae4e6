"""Does the time model order the configs of a kernel as a GPU does?

    python -m benchmarks.perfmodel.prediction_order count FOLDER COUNTS                       (no GPU; ten minutes)
    python -m benchmarks.perfmodel.counters_on_gpu time FOLDER OUT.json  (a GPU, and torch; two minutes)
    python -m benchmarks.perfmodel.prediction_order rank FOLDER OUT.json COUNTS RESULT.json   (no GPU; seconds)

FOLDER is what ``counters_cases``, ``foreign_spaces`` or ``streamed_copies`` wrote. COUNTS is what the emulator counts
of each config, once, so that a change of the time model needs seconds to be judged.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.harness import ARCH, command_line, head_of, read_json, say, write_configs
from benchmarks.perfmodel.counters_on_gpu import Case
from benchmarks.perfmodel.rank_correlation import ranked_rows, ranked_text
from cutegen_lab.core.roofline import GPUS, GpuSpec, target_gpu
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.perfmodel import MODEL, Prediction, predict_plan

ENOUGH = 0.85
MEANS = ("spearman", "spearman_resolved", "regret", "median_ratio")


def count(folder: Path, counts: Path) -> None:
    """Writes the counters of each launch of each timed case to COUNTS; what is there already stays."""
    counts.mkdir(parents=True, exist_ok=True)
    todo = [path for path in sorted(folder.glob("*.json")) if not (counts / path.name).exists()]
    with ProcessPoolExecutor() as processes:
        for path, told in zip(todo, processes.map(_counted, todo), strict=True):
            if isinstance(told, str):
                say(f"{path.stem}: {told}")
            else:
                (counts / path.name).write_text(json.dumps(told))


def _counted(path: Path) -> list[dict[str, float]] | str:
    case = Case.read(path)
    buffers = case.buffers()
    result, _ = EmulatorDevice().count(case.build, buffers.tensors, buffers.views, threading.Event())
    return str(result.execution.fault) if result.execution.fault else result.per_launch


def by_counts(case: Case, counts: Path, gpu: GpuSpec = GPUS["H200"]) -> Prediction:
    """What the model makes of the counters that :func:`count` wrote to ``counts``, on ``gpu``."""
    kernels = {kernel.name: kernel for kernel in case.build.kernels}
    compulsory = float(case.workload.compulsory_bytes)
    return predict_plan(read_json(counts), case.build.plan.launches, kernels, gpu, compulsory)


def rank(folder: Path, measured: Path, counts: Path, result: Path) -> None:
    """Prints and writes the rank correlation of each group's configs, with their times."""
    data = read_json(measured)
    gpu = target_gpu(ARCH, data["device"])
    groups, held_out = defaultdict[str, list[dict[str, Any]]](list), dict[str, bool]()
    for path in sorted(counts.glob("*.json"), key=lambda path: (path.stem.rpartition("-")[0], _number(path))):
        case = Case.read(folder / path.name)
        time_us = data["times_us"].get(case.group, {}).get(case.name)
        if time_us is not None:
            guessed_us = by_counts(case, path, gpu).time_us
            row = {"config": case.config, "measured_us": round(time_us, 2), "predicted_us": round(guessed_us, 2)}
            groups[case.group].append(row)
            held_out[case.group] = case.held_out
    ranked = {name: {"held_out": held_out[name], **ranked_rows(rows)} for name, rows in groups.items()}
    for name, group in ranked.items():
        print(ranked_text(name, group))
    means = {key: round(fmean(group[key] for group in ranked.values()), 3) for key in MEANS}
    enough = sum(group["spearman_resolved"] >= ENOUGH for group in ranked.values())
    print(f"{enough} of {len(ranked)} kernels at {ENOUGH} or more; {means}")
    write_configs(
        result, {**head_of(data), "model": MODEL, "means": means, "kernels_with_0.85_or_more": enough}, ranked
    )


def _number(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


if __name__ == "__main__":
    command_line(count, rank)

"""What the emulator counts of each config, once, so that a change of the time model needs seconds to be judged.

    python -m benchmarks.prediction_order count FOLDER COUNTS     (minutes)

FOLDER is what ``benchmarks.counters_cases`` or ``benchmarks.foreign_spaces`` wrote; the latter's ``rank`` says what the
model makes of the counts beside measured times.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.counters_on_gpu import Case
from cutegen_lab.core.roofline import GPUS, GpuSpec
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.perfmodel import Prediction, predict_plan


def looked_at(groups: Iterable[str]) -> frozenset[str]:
    """The half of ``groups`` that a change of the model may look at."""
    names = sorted(groups)
    return frozenset(random.Random(20261124).sample(names, len(names) // 2))  # noqa: S311 - the same every time


def count(folder: Path, counts: Path) -> None:
    """Writes the counters of each launch of each timed case to ``counts``; what is there already stays."""
    counts.mkdir(parents=True, exist_ok=True)
    todo = [path for path in sorted(folder.glob("*.json")) if not (counts / path.name).exists()]
    with ProcessPoolExecutor() as processes:
        for path, told in zip(todo, processes.map(_counted, todo), strict=True):
            if isinstance(told, str):
                print(f"{path.stem}: {told}", flush=True)
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
    compulsory = float(sum(spec.nbytes for spec in case.workload.tensors))
    return predict_plan(json.loads(counts.read_text()), case.build.plan.launches, kernels, gpu, compulsory)


def main() -> None:
    verb, folder, counts = sys.argv[1:]
    assert verb == "count", verb
    count(Path(folder), Path(counts))


if __name__ == "__main__":
    main()

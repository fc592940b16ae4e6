"""Counters and times of kernels on a GPU, to be compared with the emulator's and the time model's.

    python -m benchmarks.perfmodel.counters_on_gpu profile FOLDER OUT.json   (a GPU with ncu, and torch)
    python -m benchmarks.perfmodel.counters_on_gpu time FOLDER OUT.json      (a GPU, and torch)

FOLDER is what ``counters_cases`` wrote, or another script in its form. ``profile`` replays every counted case once
under ncu (``counters_compared`` reads the result); ``time`` takes the configs of each group in turns with the product's
own stopwatch (``prediction_order`` reads it). Needs no DSL.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.harness import command_line, conditions, ncu_path, read_json, say, under_ncu, write_json
from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.verdict import Fault
from cutegen_lab.devices.cuda import CudaDevice, ncu
from cutegen_lab.devices.cuda.driver import Driver, DriverError, LoadedBuild
from cutegen_lab.judge.draws.inputs import fill
from cutegen_lab.judge.execution.buffers import POISONS, Buffers
from cutegen_lab.judge.timing.confidence import relative_half_width
from cutegen_lab.judge.timing.interleaved import Effort, InterleavedTimer
from cutegen_lab.problems.dtypes import TORCH

SEED = 7
EFFORT = Effort(half_width=0.005, seconds=4.0, min_rounds=6, warm_up_seconds=0.1)


@lru_cache(1)
def _drawn(workload: Workload) -> tuple[torch.Tensor, ...]:
    """The same for all cases of a group, one after another."""
    return tuple(fill(workload, SEED))


@dataclass(frozen=True)
class Case:
    name: str
    group: str
    counted: bool
    timed: bool
    held_out: bool
    workload: Workload
    build: Build
    config: dict[str, Any]
    given: list[list[int]]

    @classmethod
    def read(cls, path: Path) -> Case:
        data = read_json(path)
        inputs, outputs = (tuple(TensorSpec.from_dict(t) for t in data[kind]) for kind in ("inputs", "outputs"))
        build = Build.from_dict(data["build"])
        keys = ("name", "group", "counted", "timed", "held_out")
        return cls(*(data[k] for k in keys), Workload("main", inputs, outputs), build, data["config"], data["given"])

    def inputs(self) -> list[torch.Tensor]:
        drawn = list(_drawn(self.workload))
        for i, (values, spec) in enumerate(zip(self.given, self.workload.inputs, strict=False)):
            drawn[i] = torch.tensor(values, dtype=TORCH[spec.dtype])
        return drawn

    def buffers(self) -> Buffers:
        return Buffers(self.workload, self.build, self.inputs(), POISONS[0])


def cases(folder: Path, *, counted: bool = False, timed: bool = False) -> Iterator[Case]:
    for path in sorted(folder.glob("*.json")):
        case = Case.read(path)
        if (counted and case.counted) or (timed and case.timed):
            yield case


# --- on the GPU ------------------------------------------------------------------------------------------------------


def launch(folder: Path, plans: Path) -> None:
    """Runs each counted case once, with no kernels but its own; writes to PLANS which launches there were."""
    torch.cuda.init()
    driver, stream = Driver(), torch.cuda.current_stream().cuda_stream
    told = []
    for case in cases(folder, counted=True):
        device = [_bytes(v).cuda() for v in case.buffers().views]
        try:
            loaded = LoadedBuild(driver, case.build)
            loaded.bind([t.data_ptr() for t in device]).enqueue(stream)
            driver.call("cuCtxSynchronize")
            loaded.close()
        except DriverError as error:
            print(f"{case.name}: {error}", file=sys.stderr, flush=True)
            continue
        told += [(case.name, at.kernel) for at in case.build.plan.launches]
        plans.write_text(json.dumps(told))


def _bytes(view: memoryview) -> torch.Tensor:
    return torch.frombuffer(bytearray(view), dtype=torch.uint8) if view.nbytes else torch.empty(0, dtype=torch.uint8)


def available(path: str) -> set[str]:
    """Names of metrics this GPU has, without their reduction."""
    asked = subprocess.run([path, "--query-metrics"], capture_output=True, text=True, check=False)  # noqa: S603
    return {line.split()[0] for line in asked.stdout.splitlines() if "__" in line.partition(" ")[0]}


def profiled(
    path: str, folder: Path, metrics: Sequence[str], sections: Sequence[str] = (), limit_s: float | None = None
) -> tuple[int, dict[str, list[dict[str, float]]]]:
    """(ncu's exit status, {case: [metrics of each launch]}) of every counted case: see ``harness.under_ncu``."""
    with tempfile.TemporaryDirectory() as scratch:
        plans = Path(scratch, "plans.json")
        words = ("benchmarks.perfmodel.counters_on_gpu", "launch", str(folder), str(plans))
        status, rows = under_ncu(path, metrics, words, sections=sections, limit_s=limit_s)
        told = read_json(plans) if plans.exists() else []
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for (name, kernel), (seen, values) in zip(told, rows, strict=False):
        assert seen.startswith(kernel[:20]) or kernel.startswith(seen[:20]), (name, kernel, seen)
        found[name].append(values)
    return status, found


def profile(folder: Path, out: Path, *, metric: tuple[str, ...] = ()) -> None:
    """Counters of every counted case by ncu: {case: [metrics of each launch]}. --metric: another of ncu's."""
    path = ncu_path()
    known, wanted = available(path), (*ncu.WANTED, *metric)
    metrics = [m for m in wanted if m.rpartition(".")[0] in known]
    missing = [m for m in wanted if m not in metrics]
    status, found = profiled(path, folder, metrics)
    write_json(out, conditions(), status=status, missing=missing, profiles=found)
    say(f"{sum(map(len, found.values()))} launches of {len(found)} kernels profiled; not there: {missing}")
    (out.parent / "metrics.txt").write_text("\n".join(sorted(known)))


def time(folder: Path, out: Path, effort: Effort = EFFORT) -> None:
    """Medians of every timed case, cold, and half their 95% intervals over them: {group: {case: value}}. Configs of
    one group are taken in turns."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases(folder, timed=True):
        groups[case.group].append(case)
    device, cancel = CudaDevice(), threading.Event()
    found: dict[str, dict[str, float]] = {}
    spread: dict[str, dict[str, float]] = {}
    for group, members in sorted(groups.items()):
        workload, inputs = members[0].workload, members[0].inputs()
        views = [memoryview(t.reshape(-1).view(torch.uint8).numpy()) for t in inputs]
        watch = device.stopwatch(workload.tensors, views, cancel)
        assert not isinstance(watch, Fault), (group, watch)
        with closing(watch):
            added = {case.name: watch.add_build(case.name, case.build) for case in members}
            names = [name for name, answer in added.items() if not isinstance(answer, Fault)]
            if not names:
                say(f"{group}: {next(iter(added.values()))}")
                continue
            seeds = iter(range(1, 1 << 30))
            taken = InterleavedTimer(watch, names, seeds.__next__, cancel).converge(effort)
        if isinstance(taken, Fault):
            say(f"{group}: {taken}")
            continue
        found[group] = {name: median(times) for name, times in taken.times_us.items()}
        spread[group] = {name: relative_half_width(times) for name, times in taken.times_us.items()}
        say(f"{group}: " + ", ".join(f"{t:.1f}" for t in found[group].values()))
        write_json(out, conditions(device.name), times_us=found, half_widths=spread)
    device.close()


if __name__ == "__main__":
    command_line(launch, profile, time)

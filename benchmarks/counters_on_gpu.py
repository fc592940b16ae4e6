"""The emulator's counters and predicted times beside a GPU's.

    python -m benchmarks.counters_on_gpu profile FOLDER OUT.json          (a GPU with ncu, and torch)
    python -m benchmarks.counters_on_gpu time FOLDER OUT.json             (a GPU, and torch)
    python -m benchmarks.counters_on_gpu compare FOLDER RESULT.json OUT.json ...    (what profile wrote; no GPU)
    python -m benchmarks.counters_on_gpu rank FOLDER RESULT.json OUT.json ...       (what time wrote; no GPU)

FOLDER is what ``benchmarks.counters_cases`` wrote. ``profile`` replays every counted case once under ncu; ``time``
takes the configs of each group in turns with the product's own stopwatch; ``compare`` and ``rank`` run them on the
emulator, print tables and write RESULT.json. Needs no DSL.
"""

from __future__ import annotations

import argparse
import json
import os
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

from cutegen_lab.bench.record import about
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

SEED, PLANS = 7, "CUTEGEN_PLANS"
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
        data = json.loads(path.read_text())
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


def launch(folder: Path) -> None:
    """Runs each counted case once, with no kernels but its own; says which launches there were."""
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
        Path(os.environ[PLANS]).write_text(json.dumps(told))


def _bytes(view: memoryview) -> torch.Tensor:
    return torch.frombuffer(bytearray(view), dtype=torch.uint8) if view.nbytes else torch.empty(0, dtype=torch.uint8)


def available(path: str) -> set[str]:
    """Names of metrics this GPU has, without their reduction."""
    asked = subprocess.run([path, "--query-metrics"], capture_output=True, text=True, check=False)  # noqa: S603
    return {line.split()[0] for line in asked.stdout.splitlines() if "__" in line.partition(" ")[0]}


def profiled(
    path: str, folder: Path, metrics: Sequence[str], sections: Sequence[str] = (), seconds: float | None = None
) -> tuple[int, dict[str, list[dict[str, float]]]]:
    """(ncu's exit status, {case: [metrics of each launch]}) of every counted case. ``sections`` are ncu's, whose
    metrics come too. Raises subprocess.TimeoutExpired after ``seconds``."""
    with tempfile.TemporaryDirectory() as scratch:
        report, plans = Path(scratch, "report.csv"), Path(scratch, "plans.json")
        tool, *options = ncu.command(path, str(report), metrics)
        more = [word for section in sections for word in ("--section", section)]
        inner = (sys.executable, "-m", "benchmarks.counters_on_gpu", "launch", str(folder))
        done = subprocess.run(  # noqa: S603 - this file, under ncu
            [tool, *more, *options, *inner], env={**os.environ, PLANS: str(plans)}, check=False, timeout=seconds
        )
        rows = ncu.read_report(report.read_text(errors="replace")) if report.exists() else []
        told = json.loads(plans.read_text()) if plans.exists() else []
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for (name, kernel), (seen, values) in zip(told, rows, strict=False):
        assert seen.startswith(kernel[:20]) or kernel.startswith(seen[:20]), (name, kernel, seen)
        found[name].append(values)
    return done.returncode, found


def profile(folder: Path, out: Path, extra: Sequence[str]) -> None:
    """Counters of every counted case by ncu: {case: [metrics of each launch]}."""
    path = ncu.find()
    if path is None:
        raise SystemExit("ncu is not installed")
    known = available(path)
    metrics = [m for m in (*ncu.WANTED, *extra) if m.rpartition(".")[0] in known]
    missing = [m for m in (*ncu.WANTED, *extra) if m not in metrics]
    status, found = profiled(path, folder, metrics)
    machine = about(torch.cuda.get_device_name())
    written = {**machine, "status": status, "missing": missing, "profiles": found}
    out.write_text(json.dumps(written) + "\n")
    launches = sum(map(len, found.values()))
    print(f"{launches} launches of {len(found)} kernels profiled; not there: {missing}", flush=True)
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
                print(f"{group}: {next(iter(added.values()))}", flush=True)
                continue
            seeds = iter(range(1, 1 << 30))
            taken = InterleavedTimer(watch, names, seeds.__next__, cancel).converge(effort)
        if isinstance(taken, Fault):
            print(f"{group}: {taken}", flush=True)
            continue
        found[group] = {name: median(times) for name, times in taken.times_us.items()}
        spread[group] = {name: relative_half_width(times) for name, times in taken.times_us.items()}
        print(f"{group}: " + ", ".join(f"{t:.1f}" for t in found[group].values()), flush=True)
        out.write_text(json.dumps(about(device.name) | {"times_us": found, "half_widths": spread}) + "\n")
    device.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("verb", choices=("launch", "profile", "time", "compare", "rank"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--metric", action="append", default=[], help="another of ncu's to record")
    arguments = parser.parse_args()
    if arguments.verb == "launch":
        launch(arguments.folder)
    elif arguments.verb == "profile":
        profile(arguments.folder, arguments.files[0], arguments.metric)
    elif arguments.verb == "time":
        time(arguments.folder, arguments.files[0])
    elif arguments.verb == "compare":
        from benchmarks.counters_compared import compare

        compare(cases(arguments.folder, counted=True), arguments.files)
    else:
        from benchmarks.times_compared import rank

        rank(cases(arguments.folder, timed=True), arguments.files)


if __name__ == "__main__":
    main()

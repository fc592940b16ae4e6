"""What is in the way of kernels that do more after a product: their rate beside that of cuBLAS's products alone.

    python -m benchmarks.fused_products_on_gpu FOLDER OUT.json      (a GPU with ncu, and torch)

FOLDER is what ``cutegen bench h200 --only swiglu linear_residual_norm --prepare FOLDER`` wrote. Each runs for a second
and more without a pause, so that the card's power limit shows: medians of times, clocks and power. ncu then says how
much of the time the tensor cores were busy, kernel by kernel, at the clock that one call alone has.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch

from cutegen_lab.bench.case import Case
from cutegen_lab.bench.prepared import Prepared
from cutegen_lab.bench.record import about
from cutegen_lab.bench.suite import CASES
from cutegen_lab.devices.cuda import ncu
from cutegen_lab.devices.cuda.driver import Driver, LoadedBuild
from cutegen_lab.devices.cuda.nvml import Card
from cutegen_lab.judge.draws.inputs import fill
from cutegen_lab.problems.dtypes import TORCH

WORK = ("swiglu", "linear_residual_norm")
SECONDS, CALLS = 1.5, 20
TENSOR, CLOCK = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "sm__cycles_elapsed.avg.per_second"
DURATION = "gpu__time_duration.sum"
SUBJECTS = ("ours", "products")
Run = Callable[[], object]


def main(folder: Path, out: Path) -> None:
    counted = profiled(folder)
    torch.cuda.init()
    driver = Driver()
    card = Card(driver.pci_bus_id(0))
    rows: list[dict[str, Any]] = []
    for case in cases(folder):
        runs = subjects(case, folder, driver)
        found = {name: steady(runs[name], card) | {"launches": counted[case.name][name]} for name in SUBJECTS}
        for subject in found.values():
            subject["tflops"] = round(case.flops / subject["us"] / 1e6)
        rows.append({"name": case.name, **found})
        print(json.dumps(rows[-1]), flush=True)
        out.write_text(json.dumps(about(torch.cuda.get_device_name()) | {"rows": rows}, indent=1) + "\n")
        del runs
        torch.cuda.empty_cache()


def cases(folder: Path) -> Iterator[Case]:
    yield from (case for case in CASES if case.work in WORK and (folder / f"{case.name}.json").exists())


def subjects(case: Case, folder: Path, driver: Driver) -> dict[str, Run]:
    """The default config's kernels, and cuBLAS's products of the same matrices into a tensor each."""
    build, workload = Prepared.load(folder, case).builds[0], case.problem.workload
    inputs = [tensor.cuda() for tensor in fill(workload, 1)]
    written = (*workload.outputs, *build.plan.workspace)
    rest = [torch.zeros(t.shape, dtype=TORCH[t.dtype], device="cuda") for t in written]
    loaded = LoadedBuild(driver, build)
    bound = loaded.bind([tensor.data_ptr() for tensor in (*inputs, *rest)])
    left, rights = inputs[0], inputs[1:3] if case.work == "swiglu" else inputs[1:2]
    products = [left.new_empty(left.shape[0], right.shape[0]) for right in rights]

    def ours(_keep: object = (inputs, rest, loaded)) -> None:
        bound.enqueue(torch.cuda.current_stream().cuda_stream)

    def alone() -> None:
        for right, product in zip(rights, products, strict=True):
            torch.mm(left, right.t(), out=product)

    return dict(zip(SUBJECTS, (ours, alone), strict=True))


def steady(run: Run, card: Card) -> dict[str, Any]:
    """Medians of the second half: µs a call, MHz of the SMs, W."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    seen: list[tuple[float, float, float]] = []
    begun = time.monotonic()
    while time.monotonic() - begun < SECONDS:
        start.record()
        for _ in range(CALLS):
            run()
        end.record()
        now = card.read()  # while the calls run
        end.synchronize()
        seen.append((start.elapsed_time(end) / CALLS * 1e3, now["sm_clock_mhz"], now["power_w"]))
    times, clocks, power = zip(*seen[len(seen) // 2 :], strict=True)
    return {"us": round(median(times), 1), "sm_clock_mhz": median(clocks), "power_w": round(median(power))}


def once(folder: Path) -> None:
    """Runs every subject's kernels once, in the order in which ``profiled`` expects them."""
    torch.cuda.init()
    driver = Driver()
    for case in cases(folder):
        for run in subjects(case, folder, driver).values():
            run()
            torch.cuda.synchronize()


def profiled(folder: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """{case: {subject: [its launches]}} by ncu."""
    path = ncu.find()
    if path is None:
        raise SystemExit("ncu is not installed")
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.csv")
        inner = (sys.executable, "-m", "benchmarks.fused_products_on_gpu", "--once", str(folder))
        wrapped = ncu.command(path, str(report), (TENSOR, CLOCK, DURATION))
        subprocess.run([*wrapped, *inner], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - this file, under ncu
        launches = iter([(name, v) for name, v in ncu.read_report(report.read_text()) if v.get(TENSOR, 0.0) > 1.0])
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for case in cases(folder):
        counts = (1, 2 if case.work == "swiglu" else 1)  # launches with tensor cores: fused, and cuBLAS's
        found[case.name] = {
            subject: [told(*next(launches)) for _ in range(count)]
            for subject, count in zip(SUBJECTS, counts, strict=True)
        }
    return found


def told(kernel: str, values: dict[str, float]) -> dict[str, Any]:
    return {
        "kernel": kernel[:60], "us": round(values[DURATION] / 1e3, 1), "tensor_cores_busy": round(values[TENSOR], 1),
        "sm_clock_mhz": round(values[CLOCK] / 1e6),
    }  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "--once":
        once(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]))

"""What is in the way of kernels that do more after a product: their rate beside that of cuBLAS's products alone.

    python -m benchmarks.templates.fused_products_on_gpu measure FOLDER OUT.json   (a GPU with ncu, and torch)

FOLDER is what ``cutegen bench h200 --only swiglu linear_residual_norm --prepare FOLDER`` wrote. Each runs for a second
and more without a pause, so that the card's power limit shows: medians of times, clocks and power. ncu then says how
much of the time the tensor cores were busy, kernel by kernel, at the clock that one call alone has.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.harness import command_line, conditions, ncu_path, say, under_ncu, write_json
from cutegen_lab.bench.case import Case
from cutegen_lab.bench.prepared import Prepared
from cutegen_lab.bench.suite import CASES
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


def measure(folder: Path, out: Path) -> None:
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
        say(json.dumps(rows[-1]))
        write_json(out, conditions(), rows=rows)
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
    words = ("benchmarks.templates.fused_products_on_gpu", "once", str(folder))
    status, rows = under_ncu(ncu_path(), (TENSOR, CLOCK, DURATION), words)
    if status:
        raise SystemExit(f"ncu ended with status {status}")
    launches = iter([(name, values) for name, values in rows if values.get(TENSOR, 0.0) > 1.0])
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
    command_line(measure, once)

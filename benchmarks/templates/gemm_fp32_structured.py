"""fp32 products beside PyTorch's own, on inputs with and without structure: how far from float64, and how long.

    python -m benchmarks.templates.gemm_fp32_structured FOLDER OUT.json   (a GPU, and torch)

FOLDER is what ``cutegen bench h200 --only gemm_f32 --prepare FOLDER`` wrote. Each kind of ``structured_products`` goes
through the default config's kernels and through eager, with PyTorch's own setting for fp32 products. Times are medians
of calls between events, L2 written over before each: "normal" is the ordinary path, and kinds that are much slower are
those whose results are computed again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import torch

from benchmarks.harness import command_line, conditions, say, write_json
from benchmarks.templates.structured_products import EXACT, KINDS, Loss, drawn, loss
from cutegen_lab.bench.case import Case
from cutegen_lab.bench.prepared import Prepared
from cutegen_lab.bench.suite import CASES
from cutegen_lab.devices.cuda.driver import Driver, LoadedBuild
from cutegen_lab.problems.dtypes import TORCH

SEEDS, CALLS, L2_BYTES = (1, 2), 25, 256 << 20
STRUCTURED_PRODUCTS = 1 << 33  # of numbers: larger cases see normal numbers alone
ORDER = 1.25  # of two worst errors of many, adding up in another order alone makes so much
Run = Callable[[], object]


def main(folder: Path, out: Path) -> None:
    torch.cuda.init()
    driver = Driver()
    rows: list[dict[str, Any]] = []
    for case in cases(folder):
        subject = Subject(case, folder, driver)
        kinds = list(KINDS) if case.flops <= 2 * STRUCTURED_PRODUCTS else ["normal"]
        for kind in kinds:
            rows.append({"name": case.name, "kind": kind, **subject.measured(kind)})
            say(json.dumps(rows[-1]))
            write_json(out, conditions(), rows=rows, summary=summary(rows))


def cases(folder: Path) -> Iterator[Case]:
    """Of two matrices; those of batches have no structure of their own."""
    found = (case for case in CASES if case.work == "gemm_f32" and (folder / f"{case.name}.json").exists())
    yield from (case for case in found if len(case.problem.workload.outputs[0].shape) == 2)


class Subject:
    """A case's kernels, and what eager makes of the same tensors."""

    def __init__(self, case: Case, folder: Path, driver: Driver) -> None:
        build, workload = Prepared.load(folder, case).builds[0], case.problem.workload
        self._linear = "linear" in case.problem.source
        self._inputs = [torch.empty(spec.shape, device="cuda") for spec in workload.inputs]
        written = (*workload.outputs, *build.plan.workspace)
        self._rest = [torch.zeros(spec.shape, dtype=TORCH[spec.dtype], device="cuda") for spec in written]
        self._loaded = LoadedBuild(driver, build)
        self._bound = self._loaded.bind([tensor.data_ptr() for tensor in (*self._inputs, *self._rest)])
        self._flush = torch.empty(L2_BYTES, dtype=torch.uint8, device="cuda")

    def measured(self, kind: str) -> dict[str, Any]:
        """The worst over seeds of each error; the times of the last."""
        mine, own = [], []
        for seed in SEEDS:
            a, b = self._drawn(kind, seed)
            self._ours()
            mine.append(loss(self._rest[0], a, b))
            own.append(loss(self._eager(), a, b))
        times = {"ours": round(self._us(self._ours), 2), "eager": round(self._us(self._eager), 2)}
        return {"ours": worst(mine), "eager": worst(own), "times_us": times}

    def _drawn(self, kind: str, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        left, right = self._inputs
        n = right.shape[0] if self._linear else right.shape[1]
        a, b = (x.cuda() for x in drawn(kind, left.shape[0], n, left.shape[1], seed))
        left.copy_(a)
        right.copy_(b.T if self._linear else b)
        return a, b

    def _ours(self) -> None:
        self._bound.enqueue(torch.cuda.current_stream().cuda_stream)

    def _eager(self) -> torch.Tensor:
        left, right = self._inputs
        return torch.nn.functional.linear(left, right) if self._linear else left @ right

    def _us(self, run: Run) -> float:
        times: list[float] = []
        for _ in range(CALLS):
            self._flush.fill_(len(times) % 256)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            run()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3)
        return median(times)


def worst(losses: list[Loss]) -> dict[str, float]:
    return {name: float(f"{max(getattr(x, name) for x in losses):.3g}") for name in Loss._fields}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """eager's time over ours for normal numbers; the most of our errors over eager's; which rows are too far off."""
    normal = [row["times_us"] for row in rows if row["kind"] == "normal"]
    worse = [row for row in rows if too_far(row)]
    ratios = [row["ours"]["norm"] / row["eager"]["norm"] for row in rows if row["eager"]["norm"]]
    return {
        "normal": round(geometric_mean([times["eager"] / times["ours"] for times in normal]), 3) if normal else None,
        "most_norm_over_eager": round(max(ratios), 3) if ratios else None,
        "too_far": [f"{row['name']}: {row['kind']}" for row in worse],
    }


def too_far(row: dict[str, Any]) -> bool:
    ours, eager = row["ours"], row["eager"]
    inexact = row["kind"] in EXACT and ours["worst"] > 0.0
    return inexact or ours["norm"] > 1.5 * eager["norm"] or ours["worst"] > max(ORDER * eager["worst"], 2.0**-23)


if __name__ == "__main__":
    command_line(main)

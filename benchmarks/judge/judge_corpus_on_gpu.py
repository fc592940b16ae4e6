"""Both corpora judged on a real GPU: what ``judge_cases corpus`` compiled, with torch and the driver alone.

    python -m benchmarks.judge.judge_corpus_on_gpu FOLDER OUT.json [--processes 8] [--only honest] [--deep] [--times 20]
                                             [--device emulator]

Prints every kernel whose verdict is not one of those expected of it, and a summary; writes all verdicts. Each time a
kernel is judged (--times) its draws are new. --deep runs compute-sanitizer too. No times are taken: several processes
share the GPU.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from benchmarks.harness import command_line, conditions, read_json, say, write_table
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.protocols import Device
from cutegen_lab.devices.cuda import CudaDevice
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.problems import read_text
from cutegen_lab.session.factories import make_judge

DEVICES: dict[str, Callable[[], Device]] = {"cuda": CudaDevice, "emulator": EmulatorDevice}
_device: Device | None = None


def judge(path: Path, deep: bool, device: str) -> dict[str, Any]:
    """One kernel's verdict beside those expected. Our own failures are kept apart from verdicts."""
    global _device
    entry = read_json(path)
    started = time.perf_counter()
    row = {key: entry[key] for key in ("name", "expect", "open_reason")}
    try:
        _device = _device or DEVICES[device]()
        problem = read_text(entry["problem"], name=entry["name"], inputs_text=entry["inputs"])
        artifact = Artifact.from_dict(entry["artifact"])
        result = make_judge(deep).check(problem, artifact, _device, lambda line: None, threading.Event())
        row |= {"verdict": result.verdict.value, "reason": result.reason}
    except Exception as error:
        row |= {"verdict": "judge_failed", "reason": f"{type(error).__name__}: {error}"[:300]}
    return row | {"seconds": round(time.perf_counter() - started, 2)}


def judged(paths: Sequence[Path], processes: int, deep: bool = False, device: str = "cuda") -> Iterator[dict[str, Any]]:
    """Every kernel's row, in the order they are done."""
    threads = max((os.cpu_count() or 1) // processes, 1)
    with multiprocessing.get_context("spawn").Pool(processes, torch.set_num_threads, (threads,)) as pool:
        yield from pool.imap_unordered(partial(judge, deep=deep, device=device), paths)


def main(
    folder: Path, out: Path, *, processes: int = 8, only: Literal["cheat", "honest"] | None = None, deep: bool = False,
    times: int = 1, device: Literal["cuda", "emulator"] = "cuda",
) -> None:  # fmt: skip
    paths = sorted(folder.glob(f"{only or ''}*.json"), reverse=True) * times
    rows: list[dict[str, Any]] = []
    for row in judged(paths, processes, deep, device):
        rows.append(row)
        if row["verdict"] not in row["expect"]:
            say(f"{row['name']}: {row['verdict']}, not {row['expect']}: {row['reason'][:160]}")
        _write(out, rows, device)
    right = Counter(row["verdict"] in row["expect"] for row in rows)
    kinds = Counter(name for name, _ in {(row["name"], row["verdict"] in row["expect"]) for row in rows})
    flips = sum(count > 1 for count in kinds.values())
    print(f"{right[True]} of {len(rows)} verdicts as expected; {flips} of {len(kinds)} kernels had both")


def _write(out: Path, rows: list[dict[str, Any]], device: str) -> None:
    """By kernel: how often each verdict came, and the reasons of those that are not expected."""
    kernels: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: str(row["name"])):
        fresh = {"name": row["name"], "expect": row["expect"], "verdicts": Counter[str](), "seconds": [], "reasons": []}
        kernel = kernels.setdefault(row["name"], fresh)
        kernel["verdicts"][row["verdict"]] += 1
        kernel["seconds"].append(row["seconds"])
        if row["verdict"] not in row["expect"]:
            kernel["reasons"].append(row["reason"])
    write_table(out, conditions(None if device == "cuda" else device), kernels.values())


if __name__ == "__main__":
    command_line(main)

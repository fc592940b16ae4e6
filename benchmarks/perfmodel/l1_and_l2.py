"""Wavefronts of L1 and sectors that L2 writes, by ncu beside the emulator's counts.

    python -m benchmarks.perfmodel.l1_and_l2 profile FOLDER OUT.json  (a GPU with ncu, and torch; minutes)
    python -m benchmarks.perfmodel.l1_and_l2 compare FOLDER OUT.json COUNTS RESULT.json   (no GPU; seconds)

FOLDER is what ``foreign_spaces`` or ``counters_cases`` wrote, COUNTS what ``prediction_order`` made of it. ``compare``
takes the cases of one launch without spills: where stores write parts of sectors, how many sectors they touch and how
many L2 writes, over the fewest that hold the bytes; and, without shared memory, L1's wavefronts over the requests.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import command_line, conditions, head_of, ncu_path, read_json, write_json, write_table
from benchmarks.perfmodel.counters_on_gpu import Case, profiled
from cutegen_lab.core.counters import SECTOR_BYTES

WAVEFRONTS, SHARED = "l1tex__data_pipe_lsu_wavefronts.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
WRITTEN = "lts__t_sectors_op_write.sum"
ENOUGH = 2**15  # sectors, a MiB
PARTS = 1.05  # sectors that stores touch over the fewest: beyond it they write parts of sectors


def profile(folder: Path, out: Path) -> None:
    path = ncu_path()
    with tempfile.TemporaryDirectory() as scratch:
        for case in folder.glob("*.json"):
            write_json(Path(scratch, case.name), read_json(case), counted=True)
        _, found = profiled(path, Path(scratch), (WAVEFRONTS, SHARED, WRITTEN))
    write_json(out, conditions(), profiles=found)


def row(name: str, config: dict[str, Any], counts: dict[str, float], seen: dict[str, float]) -> dict[str, Any]:
    found: dict[str, Any] = {"case": name, "config": " ".join(f"{key}={value}" for key, value in config.items())}
    least = counts["global_store_bytes"] / SECTOR_BYTES
    alone = not counts["bulk_store_sectors"] and not counts["global_atomic_sectors"] and least > ENOUGH
    if alone and counts["global_store_sectors"] > PARTS * least:
        found["touched"] = round(counts["global_store_sectors"] / least, 2)
        found["written"] = round(seen[WRITTEN] / least, 2)
        found["lines"] = round(counts["global_store_lines"] / counts["global_store_requests"], 1)
    if not counts["shared_requests"]:
        requests = counts["global_load_requests"] + counts["global_store_requests"]
        waves = counts["global_load_wavefronts"] + counts["global_store_lines"]
        found["wavefronts_a_request"] = round((seen[WAVEFRONTS] - seen[SHARED]) / requests, 2)
        found["predicted"] = round(waves / requests, 2)
    return found


def compare(folder: Path, measured: Path, counts: Path, result: Path) -> None:
    data, rows = read_json(measured), []
    for path in sorted(counts.glob("*.json")):
        case = Case.read(folder / path.name)
        spilled = any(kernel.spill_store_bytes for kernel in case.build.kernels)
        if len(seen := data["profiles"].get(case.name, [])) == 1 and not spilled:
            rows.append(row(case.name, case.config, read_json(path)[0], seen[0]))
    parts = [r for r in rows if "touched" in r]
    waves = [r for r in rows if "predicted" in r]
    off = median(abs(r["predicted"] / r["wavefronts_a_request"] - 1) for r in waves)
    print(f"{len(parts)} cases write parts of sectors; wavefronts of {len(waves)} off by {off:.1%} in the median")
    write_table(result, head_of(data), [r for r in rows if len(r) > 2])


if __name__ == "__main__":
    command_line(profile, compare)

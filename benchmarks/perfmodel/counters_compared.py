"""What the emulator counts, compared with what ncu counted on a GPU.

    python -m benchmarks.perfmodel.counters_compared FOLDER RESULT.json OUT.json ...   (no GPU)

FOLDER is what ``counters_cases`` wrote, each OUT.json what ``counters_on_gpu profile`` wrote.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import command_line, head_of, read_json, write_table
from benchmarks.perfmodel.counters_on_gpu import Case, cases
from cutegen_lab.devices.cuda import ncu
from cutegen_lab.emulator import Options, run_plan

EXACT = (
    "global_load_requests", "global_load_sectors", "global_load_lines", "global_store_requests", "global_store_sectors",
    "global_store_lines", "global_atomic_sectors", "shared_load_wavefronts", "shared_load_conflicts",
    "shared_store_wavefronts", "shared_store_conflicts", "shared_copy_wavefronts", "cluster_requests",
    "bulk_store_sectors", "tensor_instructions",
)  # fmt: skip
LOOSE = ("warp_instructions", "lane_instructions", "dram_load_bytes", "dram_store_bytes")
WITHIN = 0.02
WHY = {  # what differs by more, where it is understood
    "honest-compare_and_swap_sum": "threads try again until their swap succeeds, as often as others come between",
    "honest-scan_with_lookback": "a block reads again until the one before it is done",
    "honest-cooperative_grid_barrier": "blocks read the barrier's counter again until all have come",
    "honest-tunables_and_constraints": "SASS has more loads than the PTX in a loop that ptxas unrolls; not looked into",
    "honest-matmul_shared_tiles": "ptxas joins some loads of neighbouring words into wider ones",
    "warp_instructions": "the emulator counts PTX, ncu SASS",
    "dram_store_bytes": "what is still in L2 when a kernel ends has not been written",
}


def main(folder: Path, result: Path, *measured: Path) -> None:
    seen: dict[str, Any] = {}
    dates: list[str] = []
    for path in measured:  # a later profile of a case adds its metrics to an earlier one's
        data = read_json(path)
        dates.append(f"{path.stem}: {data['date']}")
        profiles = dict(seen.get("profiles", {}))
        for name, launches in data.get("profiles", {}).items():
            before = profiles.get(name, [{}] * len(launches))
            profiles[name] = [a | b for a, b in zip(before, launches, strict=True)]
        seen |= data | {"profiles": profiles}
    profiles = seen.get("profiles", {})
    counted = [_counters(case, profiles[case.name]) for case in cases(folder, counted=True) if case.name in profiles]
    head = head_of(seen)
    summary = _summary(counted)
    write_table(result, {**head, "taken": dates, "why": WHY, "summary": summary}, counted)
    print(f"{head['device']}, driver {head['driver']}, {head['date']}")
    _print(summary, counted)


def _counters(case: Case, launches: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Sums over the launches of one case, from both."""
    theirs: dict[str, float] = defaultdict(float)
    for values in launches:
        for name, value in ncu.counters(values).items():
            theirs[name] += value
    buffers = case.buffers()
    options = Options(shadow=False, races=False)
    ran = run_plan(case.build, buffers.tensors, buffers.views, threading.Event(), options)
    mine = ran.execution.counters
    if ran.execution.fault:
        return {"case": case.name, "fault": str(ran.execution.fault)}
    rows = {name: {"emulator": mine.get(name, 0.0), "gpu": theirs[name]} for name in (*EXACT, *LOOSE) if name in theirs}
    return {"case": case.name, "launches": len(launches), "of": len(case.build.plan.launches), "counters": rows}


def _summary(counted: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By counter: cases in which either counted any, how many agree within 2%, and which do not."""
    found = {}
    for name in (*EXACT, *LOOSE):
        rows = {c["case"]: c["counters"][name] for c in counted if name in c.get("counters", {})}
        rows = {case: row for case, row in rows.items() if row["emulator"] or row["gpu"]}
        apart = {c: row for c, row in rows.items() if abs(row["emulator"] - row["gpu"]) > WITHIN * row["gpu"]}
        found[name] = {"cases": len(rows), "within_2_percent": len(rows) - len(apart), "apart": sorted(apart)}
    return found


def _print(summary: Mapping[str, Mapping[str, Any]], counted: Sequence[Mapping[str, Any]]) -> None:
    by_case = {c["case"]: c for c in counted}
    for name, row in summary.items():
        print(f"  {name:24} {row['within_2_percent']:3} of {row['cases']:3} within 2%")
        for case in row["apart"][: 12 if name in EXACT else 0]:
            values = by_case[case]["counters"][name]
            print(f"      {case:44} emulator {values['emulator']:12.0f}  gpu {values['gpu']:12.0f}")


if __name__ == "__main__":
    command_line(main)

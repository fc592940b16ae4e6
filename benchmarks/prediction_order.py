"""Do predicted times order the configs of a kernel as an H200's do? The order before and after a change of the model.

    python -m benchmarks.prediction_order count FOLDER COUNTS     (minutes: the emulator counts each config once)
    python -m benchmarks.prediction_order rank FOLDER COUNTS [OUT.json]     (seconds: what the model makes of them)

FOLDER is what ``benchmarks.counters_cases`` wrote, by the tree whose kernels were measured: the one that is recorded in
``results/predicted_times_on_gpu.json``, which holds the measured times and what was predicted *before*. A config whose
recorded values differ is left out and said. The counts may be of fewer configs than were measured; v5's constants were
chosen by these correlations themselves, of groups held out or not: they say how well it fits, and nothing of how well
it foretells. Since then the groups are in two halves, drawn before v6 was begun (:func:`looked_at`): whoever changes
the model looks at one, and reports what the change does to the other. Two groups of the other, column_mean-*, were seen
too early for v6. v7 was made in sight of the same half; v8 (spills in
loops, cache lines that L1 has) moves none of the 416 configs that the present templates still have. Whether v9's terms
(waits, conversions, a shared data path) stay was decided in sight of both halves.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.counters_on_gpu import Case
from benchmarks.results import RESULTS, read_configs
from benchmarks.times_compared import SAME, regret, spearman
from cutegen_lab.core.predicted import AT_THE_FLOOR
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.perfmodel import MODEL, Prediction, predict_plan

RECORDED = RESULTS / "predicted_times_on_gpu.json"
WHOLE = 12  # configs of a group, from which its rank correlation is worth a mean
Row = dict[str, Any]


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


def rows(folder: Path, counts: Path) -> Iterator[tuple[str, Row]]:
    """(group, what is known of one config): measured, predicted before and now, the limiter now."""
    recorded = {
        f"{name}-{row['number']}": row for name, group in read_configs(RECORDED).items() for row in group["rows"]
    }
    for path in sorted(counts.glob("*.json")):
        case = Case.read(folder / path.name)
        row = recorded.get(case.name)
        if row is None or row["config"] != case.config or "predicted_us" not in row:
            print(f"{case.name}: not among the recorded configs", flush=True)
            continue
        now = by_counts(case, path)
        yield case.group, {
            "measured": row["measured_us"], "before": row["predicted_us"], "now": now.time_us,
            "limiter": AT_THE_FLOOR if AT_THE_FLOOR in now.limiter else now.limiter.partition(",")[0],
        }  # fmt: skip


def by_counts(case: Case, counts: Path) -> Prediction:
    """What the model makes of the counters that :func:`count` wrote to ``counts``, on an H200."""
    kernels = {kernel.name: kernel for kernel in case.build.kernels}
    compulsory = float(sum(spec.nbytes for spec in case.workload.tensors))
    return predict_plan(json.loads(counts.read_text()), case.build.plan.launches, kernels, GPUS["H200"], compulsory)


def ranked(of: list[Row]) -> Row:
    measured = [row["measured"] for row in of]
    found: Row = {"configs": len(of)}
    for name in ("before", "now"):
        guessed = [row[name] for row in of]
        found[name] = {
            "spearman": round(spearman(measured, guessed), 3),
            "spearman_resolved": round(spearman(measured, guessed, SAME), 3),
            "regret": round(regret(measured, guessed), 3),
            "median_ratio": round(median(max(g / m, m / g) for m, g in zip(measured, guessed, strict=True)), 3),
        }
    return found | {"limiters": dict(Counter(row["limiter"] for row in of).most_common())}


def _means(rows: list[Row]) -> Row:
    keys = ("spearman", "spearman_resolved", "regret", "median_ratio")
    each = {name: {key: round(fmean(r[name][key] for r in rows), 3) for key in keys} for name in ("before", "now")}
    return {"groups": len(rows), "lowest": min(r["now"]["spearman"] for r in rows), **each} if rows else {}


def rank(folder: Path, counts: Path, out: Path | None) -> None:
    groups: dict[str, list[Row]] = defaultdict(list)
    for group, row in rows(folder, counts):
        groups[group].append(row)
    found = {group: ranked(of) for group, of in sorted(groups.items())}
    half = looked_at(read_configs(RECORDED))
    means = {
        name: _means([row for group, row in found.items() if row["configs"] >= WHOLE and (group in half) is seen])
        for name, seen in (("looked at", True), ("reported", False))
    }
    for group, row in found.items():
        before, now = row["before"], row["now"]
        print(f"{group:28} {row['configs']:2} configs: Spearman {before['spearman']:.3f} → {now['spearman']:.3f}, "
              f"ratio {before['median_ratio']:.2f} → {now['median_ratio']:.2f}")  # fmt: skip
    print(json.dumps(means))
    if out is not None:
        out.write_text(json.dumps({"model": MODEL, "means": means, "groups": found}, indent=1) + "\n")


def main() -> None:
    verb, folder, counts, *out = sys.argv[1:]
    if verb == "count":
        count(Path(folder), Path(counts))
    else:
        rank(Path(folder), Path(counts), Path(out[0]) if out else None)


if __name__ == "__main__":
    main()

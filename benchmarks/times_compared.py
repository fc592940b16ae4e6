"""``benchmarks.counters_on_gpu rank``: how well predicted times order the configs of a group, beside measured ones.

Spearman's rank correlation takes every measured difference for real, however small. ``spearman_resolved`` is that of
the pairs of configs that the measurement tells apart: those whose times are more than 1% apart. Sampling ends when the
95% interval of each median is within 0.5% of it, so the intervals of two medians overlap up to there, and the judge
calls such kernels *same*. ``regret`` is how much longer than the fastest config the one takes that was predicted
fastest.
"""

from __future__ import annotations

import json
import math
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from benchmarks.results import write_configs
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import Profile
from cutegen_lab.core.verdict import Fault
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.perfmodel import MODEL

if TYPE_CHECKING:
    from benchmarks.counters_on_gpu import Case

SAME = 0.01
FAMILIES = {  # by how a group's name begins
    "elementwise": ("add", "gate", "gelu"), "rows": ("rms_norm", "row_sum", "softmax"), "columns": ("column",),
    "matrix products": ("gemm", "tensor"),
}  # fmt: skip
PROTOCOL = (
    "Constants were chosen with the groups to fit in sight. Eleven of those, softmax-f32-8192x2048 to "
    "tensor_core_matmul-1536 in benchmarks/timed_groups.py, were held out at first, and joined them when they had "
    "shown what was missing; the groups held out now were timed after that. They were predicted twice, the second time "
    "with one more term (blocks that do not divide among multiprocessors), which a group to fit had asked for. Model "
    "v4 came with the matrix-product template (gemm-*): what bulk copies wait for, clusters of four, blocks with more "
    "to do than others. Four of its shapes were fitted to; the two held out were timed after that, predicted once."
)
Row = dict[str, Any]


def rank(cases: Iterable[Case], files: Sequence[Path]) -> None:
    """``files``: where the result goes, then what ``time`` wrote, the latest last."""
    out, *given = files
    times, taken, head = dict[str, dict[str, float]](), list[str](), dict[str, Any]()
    for path in given:
        data = json.loads(path.read_text())
        times |= data["times_us"]
        taken.append(f"{path.stem}: {data['date']}")
        head = {key: data[key] for key in ("date", "python", "torch", "device", "driver")}
    rows, held_out = defaultdict[str, list[Row]](list), dict[str, bool]()
    timed = [case for case in cases if case.name in times.get(case.group, {})]
    with ProcessPoolExecutor() as processes:
        for case, predicted in zip(timed, processes.map(_predicted, timed, chunksize=4), strict=True):
            measured = times[case.group][case.name]
            number = int(case.name.removeprefix(f"{case.group}-"))
            rows[case.group].append({"number": number, "config": case.config, "measured_us": measured, **predicted})
            held_out[case.group] = case.held_out
    groups: dict[str, Row] = {}
    for group, found in sorted(rows.items()):
        in_order = sorted(found, key=lambda row: row["number"])
        groups[group] = {"held_out": held_out[group], **_ranked(found), "rows": in_order}
    head |= {"taken": taken, "model": MODEL, "protocol": PROTOCOL, "summary": _summary(groups)}
    write_configs(out, head, groups)
    _print(head, groups)


def _predicted(case: Case) -> Row:
    gpu, buffers = target_gpu(case.build.arch), case.buffers()
    timing, profile = EmulatorDevice().time(case.build, buffers.tensors, buffers.views, gpu, threading.Event())
    if isinstance(timing, Fault) or not isinstance(profile, Profile):
        return {"fault": str(timing)}
    return {"predicted_us": timing.time_us, "limiter": profile.limiter.partition(":")[0]}


def _ranked(rows: Sequence[Row]) -> Row:
    good = [row for row in rows if "predicted_us" in row]
    measured, guessed = ([float(row[key]) for row in good] for key in ("measured_us", "predicted_us"))
    return {
        "spearman": round(spearman(measured, guessed), 3),
        "spearman_resolved": round(spearman(measured, guessed, SAME), 3),
        "regret": round(regret(measured, guessed), 3),
        "median_off": round(median(abs(math.log(g / m)) for m, g in zip(measured, guessed, strict=True)), 3),
        "configs": len(good),
    }  # fmt: skip


def _summary(groups: Mapping[str, Row]) -> dict[str, dict[str, Row]]:
    """Means over the groups of each family, of those to fit and of those held out."""
    found: dict[str, dict[str, Row]] = {"fit": {}, "held_out": {}}
    for kind, family in ((kind, family) for kind in found for family in FAMILIES):
        members = [
            row for group, row in groups.items()
            if group.startswith(FAMILIES[family]) and row["held_out"] == (kind == "held_out")
        ]  # fmt: skip
        if members:
            means = {key: round(fmean(row[key] for row in members), 3) for key in ("spearman", "regret", "median_off")}
            found[kind][family] = {"groups": len(members), **means, "lowest": min(row["spearman"] for row in members)}
    return found


def spearman(measured: Sequence[float], guessed: Sequence[float], same: float = 0.0) -> float:
    """Rank correlation; equal values share their mean rank. A pair whose measured values are within ``same`` of each
    other is a tie of both: its order counts neither for nor against, and 1.0 is every other pair in order. 0 for fewer
    than three values, and where all are ties."""
    if len(measured) < 3:
        return 0.0
    x, y = [0] * len(measured), [0] * len(measured)  # of each value: how many are less, minus how many are more
    for i, j in combinations(range(len(measured)), 2):
        if same and tied(measured[i], measured[j], same):
            continue
        for ranks, values in ((x, measured), (y, guessed)):
            above = (values[i] > values[j]) - (values[i] < values[j])
            ranks[i] += above
            ranks[j] -= above
    alone = math.sqrt(sum(i * i for i in x) * sum(j * j for j in y))
    return sum(i * j for i, j in zip(x, y, strict=True)) / alone if alone else 0.0


def tied(one: float, other: float, same: float = SAME) -> bool:
    """Whether two times are within ``same`` of each other."""
    return max(one, other) <= (1 + same) * min(one, other)


def regret(measured: Sequence[float], guessed: Sequence[float]) -> float:
    """How much longer than the fastest the config that was predicted fastest takes: 0.0 is the fastest itself."""
    chosen = min(range(len(guessed)), key=guessed.__getitem__)
    return measured[chosen] / min(measured) - 1


def _print(head: Mapping[str, Any], groups: Mapping[str, Row]) -> None:
    print(f"{head['device']}, driver {head['driver']}, {head['date']}; {head['model']}")
    for group, row in sorted(groups.items(), key=lambda item: item[1]["held_out"]):
        kind = "held out" if row["held_out"] else "fit"
        print(f"  {kind:8} {group:26} Spearman {row['spearman']:.2f} of {row['configs']} configs "
              f"({row['spearman_resolved']:.2f} of pairs over 1% apart), regret {row['regret']:.1%}")  # fmt: skip
    print(json.dumps(head["summary"], indent=1))

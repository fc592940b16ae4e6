"""Kernels of another hand on a GPU: does their predicted time order their configs, and is their limiter ncu's?

    python -m benchmarks.perfmodel.foreign_on_gpu measure ARCHIVE.tar.xz OUT.json  (a GPU and torch; ncu if it is there)
    python -m benchmarks.perfmodel.foreign_on_gpu compare ARCHIVE.tar.xz OUT.json RESULT.json   (no GPU)
    python -m benchmarks.perfmodel.foreign_on_gpu again ARCHIVE.tar.xz RESULT.json [COUNTS]     (no GPU: predicts anew)

ARCHIVE is what ``foreign_cases`` wrote. ``measure`` takes the configs of each kernel in turns, cold, with the product's
own stopwatch, and profiles each config once; it writes after every step, so that what was measured survives a limit on
its time. ``compare`` prints and writes: Spearman's correlation within each kernel's configs, the share of limiters that
are ncu's (``ncu_limiter``), and what a wait for a cluster takes. Medians are measured to 0.5% (:data:`EFFORT`), so that
configs within 1% of each other may be ties: beside the plain correlation stands that of the other pairs
(``rank_correlation``), and how many of them the prediction has in order.

The kernels are in two halves, drawn before v7 was begun (:func:`looked_at`): whoever changes the model looks at one,
and reports what the change does to the other. What v6 made of all was known by then, and v8 was made in sight of all.
``results/foreign_blind_on_gpu.json`` has kernels that were written after it (halves mean nothing there), v9 was made in
sight of those, v10 and v11 in sight of all and of what ``foreign_spaces`` drew; whoever changes the model next had
better measure others.
"""

from __future__ import annotations

import json
import random
import subprocess
import tarfile
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import command_line, head_of, read_json, say, write_json
from benchmarks.perfmodel.cluster_waits import slope_us
from benchmarks.perfmodel.counters_on_gpu import Case, available, cases, profiled, time
from benchmarks.perfmodel.ncu_limiter import METRICS, Seen, agrees, has_word, seen
from benchmarks.perfmodel.prediction_order import by_counts
from benchmarks.perfmodel.rank_correlation import ranked_rows, ranked_text
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import Profile
from cutegen_lab.core.verdict import Fault
from cutegen_lab.devices.cuda import ncu
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge.timing.interleaved import Effort
from cutegen_lab.perfmodel import MODEL

SECTIONS = ("SpeedOfLight", "WarpStateStats")
A_PART, NCU_SECONDS = 20, 60.0  # cases that ncu replays in one go, and for how long it may
EFFORT = Effort(half_width=0.005, seconds=2.5, min_rounds=6, warm_up_seconds=0.1)
_KEPT = ("gpu__", "sm__", "smsp__average_warps_issue", "l1tex__", "lts__throughput", "dram__throughput")
Row = dict[str, Any]


def unpacked(archive: Path, folder: str) -> Path:
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return Path(folder)


def measure(archive: Path, out: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = unpacked(archive, scratch)
        time(folder, out, EFFORT)
        choices = [SECTIONS, ()]
        for part in parts(folder):
            written = read_json(out)
            told = profiles(part, choices)
            for key, value in told.items():
                written[key] = written.get(key, {}) | value if isinstance(value, dict) else value
            write_json(out, written)


def parts(folder: Path) -> list[Path]:
    """Folders with no more counted cases each than ncu replays within its time, configs of one kernel together."""
    counted = [path for path in sorted(folder.glob("*.json")) if read_json(path)["counted"]]
    found = []
    for first in range(0, len(counted), A_PART):
        part = folder / f"part{first}"
        part.mkdir()
        for path in counted[first : first + A_PART]:
            (part / path.name).hardlink_to(path)
        found.append(part)
    return found


def profiles(folder: Path, choices: list[tuple[str, ...]]) -> Row:
    """By ncu, with the first of its sections in ``choices`` that it reports something of; others are taken out."""
    path = ncu.find()
    if path is None:
        return {"ncu": "not installed"}
    known = available(path)
    metrics = [m for m in (*METRICS, *ncu.WANTED) if m.rpartition(".")[0] in known]
    missing = [m for m in METRICS if m not in metrics]
    status, found = -1, dict[str, list[dict[str, float]]]()
    for sections in tuple(choices):
        try:
            status, found = profiled(path, folder, metrics, sections, NCU_SECONDS)
        except subprocess.TimeoutExpired:
            say(f"{folder.name}: ncu was not done within {NCU_SECONDS:.0f} s")
        if found:
            break
        choices.remove(sections)
    kept = {name: [{m: v for m, v in x.items() if m.startswith(_KEPT)} for x in of] for name, of in found.items()}
    counted = {name: [ncu.counters(x) for x in of] for name, of in found.items()}
    say(f"{folder.name}: {len(found)} kernels profiled (status {status}); not there: {missing}")
    return {"ncu": f"status {status}", "missing": missing, "profiles": kept, "counted": counted}


# --- without a GPU ---------------------------------------------------------------------------------------------------


def compare(archive: Path, measured: Path, result: Path) -> None:
    data = read_json(measured)
    with tempfile.TemporaryDirectory() as scratch:
        every = list(cases(unpacked(archive, scratch), timed=True))
    found = compared([case for case in every if case.counted], data, profiled_as(data))
    _write(result, data, found, waits(data["times_us"]))


def again(archive: Path, result: Path, counts: Path | None = None) -> None:
    """Predicts anew what RESULT has, and compares that with the times and profiles that it keeps. ``counts``: folder of
    what ``prediction_order count`` wrote of the archive's cases by this emulator."""
    kept = read_json(result)
    rows = {(name, json.dumps(row["config"])): row for name, group in kept["groups"].items() for row in group["rows"]}
    with tempfile.TemporaryDirectory() as scratch:
        every = [case for case in cases(unpacked(archive, scratch), timed=True) if case.counted]
    of = {case.name: (case.group, rows[case.group, json.dumps(case.config)]) for case in every}
    assert len(of) == len(rows), "the archive has other configs than the result"
    times_us: dict[str, dict[str, float]] = defaultdict(dict)
    for name, (group, row) in of.items():
        times_us[group][name] = row["measured_us"]
    by_ncu = {name: Seen(**row["ncu"]) for name, (_, row) in of.items() if "ncu" in row}
    found = compared(every, {"times_us": times_us, "device": kept["device"]}, by_ncu, counts)
    _write(result, kept, found, kept["cluster_waits_us"])


def looked_at(groups: Iterable[str]) -> frozenset[str]:
    """The half of ``groups`` that a change of the model may look at."""
    names = sorted(groups)
    return frozenset(random.Random(20261124).sample(names, len(names) // 2))  # noqa: S311 - the same every time


def profiled_as(data: Mapping[str, Any]) -> dict[str, Seen]:
    """What ncu has of each case: of its longest launch."""
    longest = {name: max(launches, key=lambda values: values.get("gpu__time_duration.sum", 0.0))
               for name, launches in data.get("profiles", {}).items() if launches}  # fmt: skip
    return {name: seen(values) for name, values in longest.items()}


def compared(
    foreign: list[Case], data: Mapping[str, Any], by_ncu: Mapping[str, Seen], counts: Path | None = None
) -> Row:
    groups: dict[str, list[Row]] = defaultdict(list)
    for case in foreign:
        time_us = data["times_us"].get(case.group, {}).get(case.name)
        if time_us is None:
            continue
        row = {"config": case.config, "measured_us": round(time_us, 2), **predicted(case, data["device"], counts)}
        if said := by_ncu.get(case.name):
            row |= {"ncu": vars(said), "agrees": agrees(row["limiter"], said)}
        groups[case.group].append(row)
    half = looked_at(groups)
    ranked = {
        name: {"half": "looked at" if name in half else "reported"} | ranked_rows(groups[name]) for name in groups
    }
    halves = {name: _limiters(x["rows"] for x in ranked.values() if x["half"] == name)
              for name in ("looked at", "reported")}  # fmt: skip
    return {**_limiters(groups.values()), "halves": halves, "groups": ranked}


def _limiters(groups: Iterable[list[Row]]) -> Row:
    """The share of limiters that are ncu's, of those that it profiled, and of those for which it has a word."""
    judged = [row for rows in groups for row in rows if "agrees" in row]
    named = [row for row in judged if has_word(row["limiter"], Seen(**row["ncu"]))]
    return {
        "limiters_as_ncu": _right(judged), "of": len(judged),
        "limiters_as_ncu_where_it_has_a_word": _right(named), "of_those": len(named),
    }  # fmt: skip


def _right(rows: list[Row]) -> float | None:
    return round(sum(row["agrees"] for row in rows) / len(rows), 3) if rows else None


def predicted(case: Case, device: str, counts: Path | None = None) -> Row:
    """``counts``: folder of what ``prediction_order count`` wrote; without, the emulator counts now."""
    if counts is not None:
        found = by_counts(case, counts / f"{case.name}.json")
        return {"predicted_us": round(found.time_us, 2), "limiter": found.limiter}
    buffers, gpu = case.buffers(), target_gpu(case.build.arch, device)
    timing, profile = EmulatorDevice().time(case.build, buffers.tensors, buffers.views, gpu, threading.Event())
    assert not isinstance(timing, Fault) and isinstance(profile, Profile), timing
    return {"predicted_us": round(timing.time_us, 2), "limiter": profile.limiter}


def waits(times_us: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Of each kind and size of cluster what one more wait takes, in microseconds."""
    found = {}
    for group, times in times_us.items():
        if group.startswith("cluster-"):
            found[group] = round(slope_us({int(name.rpartition("-")[2]): t for name, t in times.items()}), 4)
    return found


def _write(result: Path, measured: Row, compared_rows: Row, cluster_waits_us: Mapping[str, float]) -> None:
    found = head_of(measured) | {"model": MODEL} | compared_rows | {"cluster_waits_us": cluster_waits_us}
    write_json(result, found)
    print(f"{found['device']}, {found['date']}, {found['model']}")
    for name, group in found["groups"].items():
        print(ranked_text(name, group))
        for row in group["rows"]:
            by_ncu = Seen(**row["ncu"]) if "ncu" in row else None
            said = f"{by_ncu.unit} {by_ncu.percent:.0f}%, {by_ncu.stall} {by_ncu.share:.0%}" if by_ncu else ""
            mark = {True: "=", False: "≠"}.get(row.get("agrees"), " ")
            print(f"   {row['measured_us']:7.1f} {row['predicted_us']:7.1f} µs  {row['limiter'][:60]:60} {mark} {said}")
    print(f"limiters as ncu has them: {found['limiters_as_ncu']} of {found['of']}, "
          f"{found['limiters_as_ncu_where_it_has_a_word']} of {found['of_those']} for which it has a word; "
          f"a wait: {found['cluster_waits_us']}")  # fmt: skip


if __name__ == "__main__":
    command_line(measure, compare, again)

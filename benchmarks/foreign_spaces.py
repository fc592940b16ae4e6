"""Configs of the kernels of ``benchmarks.foreign_cases`` and of later ones, drawn at random before they were timed.

    python -m benchmarks.foreign_spaces write FOLDER CUTLASS [SEED]               (needs the DSL; no GPU; five minutes)
    python -m benchmarks.counters_on_gpu time FOLDER OUT.json                     (a GPU, and torch; two minutes)
    python -m benchmarks.prediction_order count FOLDER COUNTS                     (no GPU; ten minutes)
    python -m benchmarks.foreign_spaces rank FOLDER OUT.json COUNTS RESULT.json   (no GPU; seconds)

The configs that stand beside the first kernels are four to six each: a wrong pair moves a rank correlation of so few by
0.06 to 0.2. Here each kernel's keywords have values, in ``foreign_kernels/spaces.json`` or beside the kernel, and at
most :data:`EACH` of the combinations that its rule allows are drawn by ``random.Random``. CUTLASS is a checkout of
NVIDIA/cutlass. ``foreign_kernels/unseen`` were written by a language model that had no access to the time model.

``rank`` works on any such folder, that of ``benchmarks.counters_cases`` with the templates' sweeps among them.
"""

from __future__ import annotations

import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import counters_cases
from benchmarks.counters_cases import ARCH
from benchmarks.counters_on_gpu import Case
from benchmarks.foreign_cases import KERNELS, add, blind, cases, described, nvidia
from benchmarks.foreign_on_gpu import ranked_rows, ranked_text
from benchmarks.prediction_order import by_counts
from benchmarks.results import write_configs
from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.perfmodel import MODEL

SEED, EACH = 20261202, 16
PROCESSES = 2
ENOUGH = 0.85
MEANS = ("spearman", "spearman_resolved", "regret", "median_ratio")


def allowed(said: Mapping[str, Any]) -> list[dict[str, int]]:
    """All configs of a kernel's ``space`` that its ``rule``, an expression of the keywords, allows."""
    space = said["space"]
    every = (dict(zip(space, values, strict=True)) for values in product(*space.values()))
    return [config for config in every if eval(said["rule"] or "True", {}, dict(config))]  # noqa: S307 - of this folder


def unseen() -> Iterator[tuple[counters_cases.Case, Mapping[str, Any]]]:
    """(a case without a config, its space) of the kernels that have their space beside them."""
    for path in sorted((KERNELS / "unseen").glob("*.json")):
        said = json.loads(path.read_text())
        yield described(path, said, path.with_suffix(".py.txt").read_text()), said


def drawn(checkout: Path, seed: int) -> Iterator[counters_cases.Case]:
    """At most :data:`EACH` configs of each kernel."""
    first = {case.group: case for case in (*cases(), *blind(), *nvidia(checkout))}
    spaces: dict[str, Mapping[str, Any]] = json.loads((KERNELS / "spaces.json").read_text())
    every = [(case, spaces[name]) for name, case in sorted(first.items())]
    for case, said in [*every, *unseen()]:
        configs = allowed(said)
        random.Random(f"{seed} {case.group}").shuffle(configs)  # noqa: S311 - the same every time
        for number, config in enumerate(configs[:EACH]):
            yield replace(case, name=f"{case.group}-{number}", config=config)


def write(folder: Path, checkout: Path, seed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with CageCompiler(folder / "cache") as compiler, ThreadPoolExecutor(PROCESSES) as pool:
        written = list(pool.map(lambda case: add(case, folder, compiler), drawn(checkout, seed)))
    print(f"{sum(written)} of {len(written)} configs")


def rank(folder: Path, measured: Path, counts: Path, result: Path) -> None:
    """Prints and writes each kernel's rank correlation, with the times of its configs."""
    data = json.loads(measured.read_text())
    gpu = target_gpu(ARCH, data["device"])
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in sorted(counts.glob("*.json"), key=lambda path: (path.stem.rpartition("-")[0], number(path))):
        case = Case.read(folder / path.name)
        time_us = data["times_us"].get(case.group, {}).get(case.name)
        if time_us is not None:
            guessed_us = by_counts(case, path, gpu).time_us
            row = {"config": case.config, "measured_us": round(time_us, 2), "predicted_us": round(guessed_us, 2)}
            groups[case.group].append(row)
    ranked = {name: ranked_rows(rows) for name, rows in groups.items()}
    for name, group in ranked.items():
        print(ranked_text(name, group))
    means = {key: round(fmean(group[key] for group in ranked.values()), 3) for key in MEANS}
    enough = sum(group["spearman_resolved"] >= ENOUGH for group in ranked.values())
    print(f"{enough} of {len(ranked)} kernels at {ENOUGH} or more; {means}")
    head = {key: data[key] for key in ("date", "python", "torch", "device", "driver")} | {"model": MODEL}
    write_configs(result, head | {"means": means, "kernels_with_0.85_or_more": enough}, ranked)


def number(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def main() -> None:
    verb, *words = sys.argv[1:]
    if verb == "rank":
        folder, measured, counts, result = map(Path, words)
        rank(folder, measured, counts, result)
    else:
        folder, checkout = map(Path, words[:2])
        write(folder, checkout, int(words[2]) if len(words) > 2 else SEED)


if __name__ == "__main__":
    main()

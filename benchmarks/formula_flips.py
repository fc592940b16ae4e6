"""Honest formulas judged with fresh seeds: how often one is refused. No GPU is needed; a machine with many cores helps.

    python -m benchmarks.formula_flips OUT.json [--seeds 20] [--first 1] [--processes N] [--seconds 600]

The formulas are those of ``tests/judge/more_formulas.py``, as ``tests/judge/test_formulas.py`` judges them. All of
one seed come before the next, so that a run that ends early has judged each alike. Prints every refusal; writes the
counts.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections import Counter
from pathlib import Path

import torch

from cutegen_lab.bench.record import about
from cutegen_lab.core.verdict import Verdict
from tests.judge.more_formulas import ALL_FORMULAS
from tests.judge.test_formulas import judged


def judge(trial: tuple[int, int]) -> tuple[int, int, str]:
    """Number of the formula, seed, and why it was refused ("" if it passed)."""
    number, seed = trial
    found = judged(*ALL_FORMULAS[number][1:], seed)
    return number, seed, "" if found.verdict is Verdict.PASSED else f"{found.verdict.value}: {found.reason}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=600.0, help="no trial counts that ends later")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    trials = [(number, seed) for seed in seeds for number in range(len(ALL_FORMULAS))]
    passed, refused, ends = Counter[str](), dict[str, str](), time.monotonic() + arguments.seconds
    with multiprocessing.get_context("spawn").Pool(arguments.processes, torch.set_num_threads, (1,)) as pool:
        found = pool.imap_unordered(judge, trials)
        for _ in trials:
            try:
                number, seed, why = found.next(max(ends - time.monotonic(), 0.0))
            except multiprocessing.TimeoutError:
                break
            name = ALL_FORMULAS[number][0]
            passed[name] += not why
            if why:
                refused[f"{name}, seed {seed}"] = why
                print(f"{name}, seed {seed}: {why[:200]}", flush=True)
        pool.terminate()
    judgments = sum(passed.values()) + len(refused)
    print(f"{judgments} of {len(trials)} trials of {len(ALL_FORMULAS)} formulas: {len(refused)} refused")
    record = {**about("cpu"), "first_seed": seeds[0], "seeds": len(seeds), "trials": judgments, "refused": refused}
    record["passed"] = dict(sorted(passed.items()))
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Honest formulas judged with fresh seeds: how often one is refused. No GPU is needed; a machine with many cores helps.

    python -m benchmarks.judge.formula_flips OUT.json [--seeds 20] [--first 1] [--processes N] [--seconds 600]

The formulas are those of ``tests/judge/more_formulas.py``, as ``tests/judge/test_formulas.py`` judges them. All of one
seed come before the next, so that a run that ends early has judged each alike. Prints every refusal; writes the counts.
No trial counts that ends after --seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from pathlib import Path

import torch

from benchmarks.harness import command_line, conditions, say, write_json
from cutegen_lab.core.verdict import Verdict
from tests.judge.more_formulas import ALL_FORMULAS
from tests.judge.test_formulas import judged


def judge(trial: tuple[int, int]) -> tuple[int, int, str]:
    """Number of the formula, seed, and why it was refused ("" if it passed)."""
    number, seed = trial
    found = judged(*ALL_FORMULAS[number][1:], seed)
    return number, seed, "" if found.verdict is Verdict.PASSED else f"{found.verdict.value}: {found.reason}"


def main(
    out: Path, *, seeds: int = 20, first: int = 1, processes: int = os.cpu_count() or 1, seconds: float = 600.0
) -> None:
    trials = [(number, first + seed) for seed in range(seeds) for number in range(len(ALL_FORMULAS))]
    passed, refused, ends = Counter[str](), dict[str, str](), time.monotonic() + seconds
    with multiprocessing.get_context("spawn").Pool(processes, torch.set_num_threads, (1,)) as pool:
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
                say(f"{name}, seed {seed}: {why[:200]}")
        pool.terminate()
    judgments = sum(passed.values()) + len(refused)
    print(f"{judgments} of {len(trials)} trials of {len(ALL_FORMULAS)} formulas: {len(refused)} refused")
    facts = {"first_seed": first, "seeds": seeds, "trials": judgments, "refused": refused}
    write_json(out, conditions("cpu"), **facts, passed=dict(sorted(passed.items())))


if __name__ == "__main__":
    command_line(main)

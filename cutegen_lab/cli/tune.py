"""``cutegen tune PROBLEM.py [KERNEL.py]``. Exit 0: the fastest found passed the judge; 3: none did; 130: Ctrl-C."""

from __future__ import annotations

import argparse
import math
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cutegen_lab.cli.judge import OTHER_VERDICT, read_given
from cutegen_lab.cli.main import INTERRUPTED
from cutegen_lab.cli.output import Output
from cutegen_lab.config import Settings
from cutegen_lab.core.problem import Problem
from cutegen_lab.session import Session
from cutegen_lab.session.kernels import headed, write_atomically
from cutegen_lab.session.parts import make_compiler


def execute(arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.problems import read_file
    from cutegen_lab.session.tune import TuneSettings, from_template, from_text, tune
    from cutegen_lab.tuning.tuner import Limits

    problem = read_file(arguments.problem, inputs_text=arguments.inputs)
    if arguments.kernel:
        given = read_given(Path(arguments.kernel), None)
        tunable = from_text(given.source, given.config, arguments.kernel, arguments.seed)
    else:
        tunable = from_template(problem, arguments.seed)
    limits = Limits(arguments.budget, math.inf if arguments.max_seconds is None else arguments.max_seconds)
    settings = TuneSettings(limits, arguments.arch, arguments.gpu, arguments.device, arguments.seed)
    if arguments.simulate:
        return _simulate(arguments, problem, tunable, settings, output)
    compiler = make_compiler(Settings.from_environment().cache_dir, workers=os.cpu_count() or 2)
    with Session.open(arguments.workdir, compiler=compiler) as session:
        found = tune(session, problem, tunable, settings, lambda line: _progress(problem, line))
    for line in _report(problem, found):
        output.line(line)
    if arguments.out and found.best is not None:
        write_atomically(Path(arguments.out), headed(_comments(problem, found), tunable.source, found.best))
        output.line(f"written to {arguments.out}")
    output.result(_facts(problem, found))
    if found.interrupted:
        return INTERRUPTED
    return 0 if found.best is not None else OTHER_VERDICT


def _simulate(arguments: argparse.Namespace, problem: Problem, tunable: Any, settings: Any, output: Output) -> int:
    from cutegen_lab.session.simulate import simulate
    from cutegen_lab.session.tune import CACHE

    home = Path(arguments.workdir) if arguments.workdir else Settings.from_environment().workdir
    found = simulate(home / CACHE, problem, tunable, settings)
    place = found.place
    output.line(f"{problem.name}: simulated on {found.configs} configs {place.kind} on {place.device}; nothing was run")
    output.line(f"evaluations until within 3% of the fastest: {found.near or '-'}; until the fastest: "
                f"{found.fastest or '-'}; in all: {len(found.steps)}")  # fmt: skip
    output.result({
        "reason": "simulated", "kind": place.kind, "device": place.device, "configs": found.configs,
        "near": found.near, "fastest": found.fastest, "best_us": found.best_us,
        "steps": [asdict(step) for step in found.steps],
    })  # fmt: skip
    return 0


def _progress(problem: Problem, line: str) -> None:
    print(f"{problem.name}: {' '.join(line.split())}", file=sys.stderr, flush=True)


def _report(problem: Problem, found: Any) -> list[str]:
    from cutegen_lab.tuning.tuner import brief

    tally = found.tally
    lines = [
        f"{problem.name}: {tally.evaluated} configs {found.kind} on {found.device}, {tally.from_cache} known before, "
        f"{tally.failed} failed, {tally.ruled_out} ruled out; {tally.stopped}",
    ]
    if found.kind == "predicted":
        lines.append("times are the emulator's predictions; nothing was measured")
    elif tally.seconds:
        lines.append(f"the device was busy for {tally.busy_seconds / tally.seconds:.0%} of {tally.seconds:.0f} s")
    lines += ["", f"{'workload':10} {'default':>12} {'one config':>12} {'its fastest':>12}   by"]
    lines += [
        f"{row.workload:10} {_us(row.default_us):>12} {_us(row.chosen_us):>12} {_us(row.own_us):>12}   {brief(row.own)}"
        for row in found.rows
    ]
    lines.append("")
    lines += [f"not right: {brief(c)}: {v.value} ({reason})" for c, v, reason in found.rejected]
    if found.best is not None:
        lines.append(f"best: {brief(found.best)}")
        lines.append(f"verdict: passed ({found.check.reason}); {_us(found.timing.time_us)} {found.timing.kind}")
    elif found.interrupted and found.leading:
        lines.append(f"interrupted; fastest so far, not checked: {brief(found.leading[0])}")
        lines.append("the same command goes on from here")
    else:
        lines.append("verdict: no config that ran passed the judge" if found.leading else "verdict: no config ran")
    return lines


def _facts(problem: Problem, found: Any) -> dict[str, Any]:
    tally = asdict(found.tally)
    tally["in_turns"] = list(tally["in_turns"].values())
    verdict = "passed" if found.best is not None else found.rejected[-1][1].value if found.rejected else None
    return {
        "problem": problem.name, "verdict": verdict, "reason": found.check.reason if found.check else tally["stopped"],
        "kernel": found.tunable.what, "kind": found.kind, "device": found.device, "best": found.best,
        "default": found.tunable.space.default, "time_us": found.timing.time_us if found.timing else None,
        "timing": asdict(found.timing) if found.timing else None, "interrupted": found.interrupted,
        "leading": found.leading and {"config": found.leading[0], "time_us": found.leading[1]},
        "space": {"configs": len(found.tunable.space.configs), "total": found.tunable.space.total,
                  "sampled": found.tunable.space.sampled, "domains": found.tunable.space.domains},
        "search": tally, "cache": str(found.cache), "workloads": [asdict(row) for row in found.rows],
        "ranked": [{"config": c, "time_us": t} for c, t in found.ranked],
        "rejected": [{"config": c, "verdict": v.value, "reason": r} for c, v, r in found.rejected],
    }  # fmt: skip


def _comments(problem: Problem, found: Any) -> list[str]:
    from cutegen_lab.session.versions import versions

    tally, row = found.tally, found.rows[0]
    text = [
        f"{problem.name}: {found.tunable.what}, tuned by cutegen-lab",
        f"workloads: {'; '.join(row.tensors for row in found.rows)}",
        f"verdict: {found.check.verdict.value} ({found.check.reason})",
        f"time: {_us(found.timing.time_us)} {found.timing.kind} on {found.timing.device}; the default config's "
        f"{_us(row.default_us)}, of {tally.evaluated + tally.from_cache} configs {found.kind}",
        "made with " + ", ".join(f"{k} {v}" for k, v in sorted(versions().items())),
    ]
    return [f"# {' '.join(line.split())}".replace("µs", "us") for line in text]


def _us(time_us: float | None) -> str:
    return "-" if time_us is None else f"{time_us:.1f} µs"

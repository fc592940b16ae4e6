"""Kernels of two versions of the templates: which are other machine code, and how long they take in turns on one GPU.

    python -m benchmarks.templates.kernels_compared write FOLDER [--only PART ...]          (the DSL; no GPU)
    python -m benchmarks.templates.kernels_compared time OLD NEW OUT.json [--seconds 200]   (a GPU)

``write`` compiles the default config of each case of ``cutegen bench``, once for each version's tree, which PYTHONPATH
names. ``time`` takes the cases whose PTX differs but for names and line tables, and then others as a measure of the
noise, in random order (seed 1) until the time is up. It writes the ratio of each round's times, new over old: the
median and its 95% interval.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import re
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

from benchmarks.harness import ARCH, command_line, compiled, conditions, read_json, say, write_json

MOVED = re.compile(r"^\s*(\.loc\b|\.file\b|//)|^\s*$")


def same_but_for_names(ptx: str) -> str:
    """PTX without line tables and comments, kernels called by their number."""
    text = re.split(r"^\s*\.section\b", ptx, maxsplit=1, flags=re.M)[0]
    lines = [re.sub(r"\s*//.*", "", line) for line in text.splitlines() if not MOVED.match(line)]
    text = "\n".join(lines)
    for number, name in enumerate(dict.fromkeys(re.findall(r"\.entry\s+([\w$]+)", text))):
        text = re.sub(rf"\b{re.escape(name)}", f"kernel_{number}", text)
    return text


def write_one(task: tuple[str, Path]) -> str:
    """Compiles one case of the suite; returns what became of it."""
    from cutegen_lab.bench.suite import CASES
    from cutegen_lab.compile import CageCompiler
    from cutegen_lab.core.artifact import Artifact
    from cutegen_lab.core.errors import CutegenError
    from cutegen_lab.templates.recognise import template_for

    name, folder = task
    case = next(case for case in CASES if case.name == name)
    try:
        template = template_for(case.problem, ARCH)
        config = dict(template.default_config())
        source = template.write(config)
    except CutegenError as error:
        return f"{name}: {error}"
    with tempfile.TemporaryDirectory() as cache, closing(CageCompiler(Path(cache))) as compiler:
        built = compiled(compiler, source, config, [case.problem.workload])
    if not isinstance(built, Artifact):
        return f"{name}: {built.reason}"
    build = built.builds[case.problem.workload.name]
    entry = {"family": template.name, "config": config, "ptx": same_but_for_names(build.ptx)}
    write_json(folder / f"{name}.json", entry, build=build.to_dict() | {"ptx": ""})
    return f"{name}: {template.name}"


def write(folder: Path, *, only: tuple[str, ...] = ()) -> None:
    from cutegen_lab.bench.suite import CASES

    folder.mkdir(parents=True, exist_ok=True)
    names = [case.name for case in CASES if not only or any(part in case.name for part in only)]
    with multiprocessing.get_context("spawn").Pool(max((os.cpu_count() or 2) - 1, 1)) as pool:
        for said in pool.imap_unordered(write_one, [(name, folder) for name in names]):
            say(said)


def in_turns(device: Any, name: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Both builds of a case in turns."""
    from cutegen_lab.bench.measure import EFFORT
    from cutegen_lab.bench.suite import CASES
    from cutegen_lab.core.artifact import Build
    from cutegen_lab.core.verdict import Fault
    from cutegen_lab.judge.timing.confidence import comparison
    from cutegen_lab.judge.timing.interleaved import InterleavedTimer
    from cutegen_lab.judge.timing.timed_outputs import inputs_for
    from cutegen_lab.problems import Reference
    from cutegen_lab.problems.tensors import to_bytes

    problem = next(case.problem for case in CASES if case.name == name)
    workload = problem.workload
    given = to_bytes(inputs_for(problem, Reference(problem), 1), workload.inputs)
    watch = device.stopwatch(workload.tensors, given, threading.Event())
    if isinstance(watch, Fault):
        return {"fault": str(watch)}
    with closing(watch):
        for subject, entry in (("new", new), ("old", old)):
            if isinstance(added := watch.add_build(subject, Build.from_dict(entry["build"])), Fault):
                return {"fault": f"{subject}: {added}"}
        rounds = InterleavedTimer(watch, ["new", "old"], itertools.count(100).__next__, threading.Event()).converge(
            EFFORT
        )
    if isinstance(rounds, Fault):
        return {"fault": str(rounds)}
    found = comparison("old", rounds.times_us["new"], rounds.times_us["old"])
    return {"new_over_old": [round(ratio, 4) for ratio in (found.ratio, found.low, found.high)]}


def time(old: Path, new: Path, out: Path, *, seconds: float = 200.0) -> None:
    from cutegen_lab.devices.cuda import CudaDevice

    pairs = {
        path.stem: (read_json(old / path.name), read_json(path))
        for path in sorted(new.glob("*.json")) if (old / path.name).exists()
    }  # fmt: skip
    names = list(pairs)
    random.Random(1).shuffle(names)  # noqa: S311 - an order
    names.sort(key=lambda name: pairs[name][0]["ptx"] == pairs[name][1]["ptx"])
    device, rows, until = CudaDevice(), list[dict[str, Any]](), monotonic() + seconds
    for name in names:
        before, after = pairs[name]
        row = {"name": name, "family": after["family"], "same_ptx": before["ptx"] == after["ptx"]}
        if monotonic() < until:
            row |= in_turns(device, name, before, after)
        rows.append(row)
        say(row)
    same = sum(row["same_ptx"] for row in rows)
    write_json(out, conditions(device.name), cases=len(rows), same_ptx=same, rows=rows)
    device.close()


if __name__ == "__main__":
    command_line(write, time)

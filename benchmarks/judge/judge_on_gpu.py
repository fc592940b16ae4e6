"""The judge on a real GPU: both corpora, times that repeat, pairs it must tell apart, faults it must survive, times it
must refuse.

    python -m benchmarks.judge.judge_on_gpu FOLDER OUT.json [--corpus FOLDER] [--part NAME ...]

FOLDER is what ``judge_cases timed`` wrote, that of --corpus what ``judge_cases corpus`` did. Needs torch, the driver
and the standard library; no DSL. OUT.json is written after every row; the last lines are a table of all parts.
--seconds bounds the cold samples of one timing; of --checks timed calls the outputs are checked, on the CPU.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.harness import command_line, conditions, quiet, read_json, say, write_table
from benchmarks.judge.judge_corpus_on_gpu import judged
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import Timing
from cutegen_lab.core.verdict import Fault
from cutegen_lab.devices.cuda import CudaDevice
from cutegen_lab.judge import StandardJudge
from cutegen_lab.judge.timing.confidence import relative_half_width
from cutegen_lab.judge.timing.interleaved import Effort, InterleavedTimer
from cutegen_lab.problems import read_text

Row = dict[str, Any]
REPEATS_WITHIN = 0.01
CONDITIONS = ("SM clock", "power", "throttle reasons")  # that may change from row to row
AUTOTUNED = ("softmax-4096x4096", "rmsnorm-32768x8192")
PAIRED = ("softmax-4096x4096", "softmax-32768x8192", "rmsnorm-4096x4096", "add-4194304")
# FINDINGS.md: single calls between events, L2 written over before, torch 2.11.0 on an H200
FOUND_US = {"softmax": 1_010.0, "rmsnorm": 403.0, "matmul": 2 * 4096**3 / 792e12 * 1e6}
EAGER = {
    "softmax": ("def reference(x):\n    return torch.softmax(x, dim=-1)\n", "x: bf16[32768,8192]"),
    "rmsnorm": (
        "def reference(x, w):\n    return F.rms_norm(x, (x.shape[-1],), w, 1e-6)\n",
        "x: bf16[32768,8192], w: bf16[8192]",
    ),
    "matmul": ("def reference(a, b):\n    return a @ b\n", "a: bf16[4096,4096], b: bf16[4096,4096]"),
}


class Bed:
    """Cases, a device and a judge."""

    def __init__(self, folder: Path, corpus: Path | None, effort: Effort) -> None:
        self.folder, self.corpus, self.effort = folder, corpus, effort
        self.device, self.judge, self.cancel = CudaDevice(), StandardJudge(), threading.Event()

    def case(self, name: str) -> tuple[Problem, Artifact]:
        entry = read_json(self.folder / f"{name}.json")
        problem = read_text(entry["problem"], name=name, inputs_text=entry["inputs"])
        artifact = Artifact.from_dict(entry["artifact"])
        kept = tuple(w for w in problem.check_workloads if w.name in artifact.builds)
        return replace(problem, check_workloads=kept), artifact

    def time(
        self, problem: Problem, artifact: Artifact, effort: Effort | None = None, incumbent: Artifact | None = None
    ) -> Timing | Fault:
        self.judge.effort = effort or self.effort
        gpu = target_gpu(artifact.arch, self.device.name)
        return self.judge.time(problem, artifact, self.device, gpu, quiet, self.cancel, incumbent=incumbent)[0]

    def check(self, problem: Problem, artifact: Artifact) -> tuple[str, str]:
        result = self.judge.check(problem, artifact, self.device, quiet, self.cancel)
        return result.verdict.value, result.reason


def corpora(bed: Bed, repeat: int) -> Iterator[Row]:
    """Every cheat that compiles and every honest kernel, several at a time."""
    paths = sorted(bed.corpus.glob("*.json"), reverse=True) if bed.corpus else []
    for row in judged(paths, processes=os.cpu_count() or 1):
        kind = row["name"].partition("-")[0]
        told = {name: value for name, value in row.items() if value != "" and name != "name"}
        yield {"part": f"corpus: {kind}", "case": row["name"], **told, "ok": row["verdict"] in row["expect"]}


def times(bed: Bed, repeat: int) -> Iterator[Row]:
    """Every size, ``repeat`` times over, with all baselines; cold medians must repeat within 1%."""
    names = sorted(p.stem for p in bed.folder.glob("*-*.json"))
    runs: dict[str, list[float]] = {name: [] for name in names}
    for number in range(repeat):
        for name in names:
            problem, artifact = bed.case(name)
            autotune = ("max-autotune",) if number == 0 and name in AUTOTUNED else ()
            effort = replace(bed.effort, references=(*bed.effort.references, *autotune))
            found = bed.time(problem, artifact, effort)
            row = {"part": "times", "case": name, "run": number + 1, **told(found)}
            if isinstance(found, Timing):
                runs[name].append(found.time_us)
                spread = max(runs[name]) / min(runs[name]) - 1
                row |= {"spread_of_runs": spread, "ok": spread < REPEATS_WITHIN}
            yield row


def pairs(bed: Bed, repeat: int) -> Iterator[Row]:
    """A kernel beside itself, beside one that does 2% more, and that one beside it."""
    effort = replace(bed.effort, references=(), seconds=2 * bed.effort.seconds)
    for name in PAIRED:
        problem, artifact = bed.case(name)
        slower = with_more(artifact, 0.02)
        for number in range(repeat):
            for what, mine, theirs, expected in (
                ("itself", artifact, artifact, "same"),
                ("2% more", artifact, slower, "faster"),
                ("2% less", slower, artifact, "slower"),
            ):
                found = bed.time(problem, mine, effort, incumbent=theirs)
                row = {"part": "pairs", "case": name, "beside": what, "run": number + 1, "expected": expected}
                against = found.against("incumbent") if isinstance(found, Timing) else None
                yield row | told(found) | {"ok": against is not None and against.answer == expected}


def with_more(artifact: Artifact, share: float) -> Artifact:
    """The same kernel, launched once more over the first ``share`` of its blocks."""
    build = artifact.builds["main"]
    launch = build.plan.launches[0]
    blocks = max(round(launch.grid[0] * share / launch.cluster[0]), 1) * launch.cluster[0]
    again = replace(launch, grid=(blocks, *launch.grid[1:]))
    plan = replace(build.plan, launches=(*build.plan.launches, again))
    return replace(artifact, builds={**artifact.builds, "main": replace(build, plan=plan)})


def eager(bed: Bed, repeat: int) -> Iterator[Row]:
    """Eager PyTorch alone, by both clocks, beside what was measured before this judge was written."""
    for name, (source, inputs) in EAGER.items():
        problem = read_text(source, name=name, inputs_text=inputs)
        workload = problem.workload
        values = [torch.randn(s.shape).to(torch.bfloat16) for s in workload.inputs]
        views = [memoryview(v.reshape(-1).view(torch.uint8).numpy()) for v in values]
        watch = bed.device.stopwatch(workload.tensors, views, bed.cancel)
        assert not isinstance(watch, Fault), watch
        seeds = iter(range(1 << 30))
        with closing(watch):
            added = watch.add_reference("eager PyTorch", problem, "eager")
            assert not isinstance(added, Fault), added
            turns = InterleavedTimer(watch, ["eager PyTorch"], seeds.__next__, bed.cancel)
            cold, single = turns.converge(bed.effort), turns.rounds("events", 30)
        assert not isinstance(cold, Fault) and not isinstance(single, Fault)
        (graph_us,), (event_us,) = cold.times_us.values(), single.times_us.values()
        ratio = median(event_us) / FOUND_US[name]
        yield {
            "part": "eager", "case": name, "time_us": median(graph_us), "events_us": median(event_us),
            "half_width": relative_half_width(graph_us), "found_us": FOUND_US[name], "ratio": ratio,
            "ok": abs(ratio - 1) < 0.03,
        }  # fmt: skip


def faults(bed: Bed, repeat: int) -> Iterator[Row]:
    """What a kernel or a plan can do to the device; after each, a good kernel passes and is timed again."""
    good = bed.case("plus_one")
    for name, expected, act in _acts(bed):
        started = time.perf_counter()
        try:
            verdict, reason = act()
        except CutegenError as error:
            verdict, reason = type(error).__name__, str(error)
        row: Row = {"part": "faults", "case": name, "verdict": verdict, "expected": expected, "reason": reason}
        row["seconds"] = round(time.perf_counter() - started, 2)
        again, _ = bed.check(*good)
        timed = bed.time(*good, replace(bed.effort, references=(), seconds=0.5))
        recovered = again == "passed" and isinstance(timed, Timing)
        yield row | {"recovered": recovered, "ok": recovered and verdict == expected}


def _acts(bed: Bed) -> Iterator[tuple[str, str, Callable[[], tuple[str, str]]]]:
    def timed(problem: Problem, artifact: Artifact) -> tuple[str, str]:
        found = bed.time(problem, artifact, replace(bed.effort, references=(), seconds=1.0))
        return (found.verdict.value, found.message) if isinstance(found, Fault) else ("passed", "")

    def executed(problem: Problem, artifact: Artifact) -> tuple[str, str]:
        """Past the judge's own validation: what the worker makes of it."""
        build, tensors = artifact.builds["main"], problem.workload.tensors
        views = [memoryview(bytearray(spec.nbytes)) for spec in tensors]
        fault = bed.device.execute(build, tensors, views, bed.cancel).fault
        return (fault.verdict.value, fault.message) if fault else ("passed", "")

    problem, good = bed.case("plus_one")
    for name, verdict in (("hang", "hang"), ("illegal_address", "out_of_bounds")):
        yield f"{name}, checked", verdict, partial(bed.check, *bed.case(name))
        yield f"{name}, timed", verdict, partial(timed, *bed.case(name))
    huge = forged(good, dynamic_smem_bytes=300_000)
    yield "shared memory, checked", "invalid_plan", lambda: bed.check(problem, huge)
    yield "shared memory, past validation", "invalid_plan", lambda: executed(problem, huge)
    window = forged(good, attributes={1: bytes(32)})
    yield "window of persisting L2", "invalid_plan", lambda: bed.check(problem, window)
    scratch = (TensorSpec("scratch", DType.F32, (1 << 38,)),)
    build = good.builds["main"]
    greedy = replace(build, plan=replace(build.plan, workspace=scratch))
    yield "1 TiB of workspace", "out_of_memory", lambda: timed(problem, replace(good, builds={"main": greedy}))
    outer = read_text("def reference(x, y):\n    return x[:, None] * y\n", inputs_text="x: f32[262144], y: f32[262144]")
    yield "256 GiB of output", "out_of_memory", lambda: timed(outer, good)
    other = replace(good, builds={"main": replace(build, arch="sm_100a")})
    yield "another architecture", "unsupported", lambda: executed(problem, other)

    def far() -> tuple[str, str]:
        CudaDevice(index=99)
        return "passed", ""

    yield "cuda:99", "SetupError", far


def forged(artifact: Artifact, **change: Any) -> Artifact:
    build = artifact.builds["main"]
    launch = replace(build.plan.launches[0], **change)
    plan = replace(build.plan, launches=(launch,))
    return replace(artifact, builds={"main": replace(build, plan=plan)})


def floor(bed: Bed, repeat: int) -> Iterator[Row]:
    """A kernel that is right for every finite input and reads none: its time is impossible for the problem's bytes."""
    found = bed.time(*bed.case("unread"))
    verdict = found.verdict.value if isinstance(found, Fault) else "passed"
    yield {
        "part": "floor", "case": "unread", "verdict": verdict, "expected": "too_fast", **told(found),
        "ok": verdict == "too_fast",
    }  # fmt: skip


PARTS: dict[str, Callable[[Bed, int], Iterator[Row]]] = {
    "corpora": corpora, "pairs": pairs, "faults": faults, "floor": floor, "eager": eager, "times": times,
}  # fmt: skip


def told(found: Timing | Fault) -> Row:
    if isinstance(found, Fault):
        return {"verdict": found.verdict.value, "reason": found.message}
    return {
        "time_us": found.time_us, "half_width_us": found.half_width_us, "iqr_us": found.iqr_us,
        "samples": found.samples, "warm_us": found.warm_us, "baselines_us": dict(found.baselines),
        "comparisons": [asdict(c) for c in found.comparisons], "notes": list(found.notes) or None,
        "conditions": {name: found.conditions[name] for name in CONDITIONS if name in found.conditions},
    }  # fmt: skip


def line(row: Row) -> str:
    number = f"{row['time_us']:.2f} µs" if "time_us" in row else row.get("verdict", "")
    pairs_of = [f"{c['answer']}: {c['ratio']:.3f} of {c['against']}" for c in row.get("comparisons", ())]
    words = [row["part"], row["case"], row.get("beside", ""), number, *pairs_of, row.get("reason", "")[:140]]
    return f"{'ok ' if row['ok'] else 'NOT'} " + " | ".join(w for w in words if w)


def table(rows: Sequence[Row]) -> str:
    """Of each part: how many rows are as they must be, and its figures."""
    lines = ["| part | as they must be | figures |", "|---|---|---|"]
    for part in dict.fromkeys(row["part"] for row in rows):
        mine = [row for row in rows if row["part"] == part]
        figures = [f"{row['case']} {row['events_us']:.1f} µs by events, {row['ratio'] - 1:+.1%}"
                   for row in mine if "ratio" in row]  # fmt: skip
        if spreads := [row["spread_of_runs"] for row in mine if "spread_of_runs" in row]:
            figures.append(f"repeated medians differ by at most {max(spreads):.2%}")
        if seconds := [row["seconds"] for row in mine if "seconds" in row]:
            figures.append(f"at most {max(seconds):.1f} s each")
        lines.append(f"| {part} | {sum(row['ok'] for row in mine)} of {len(mine)} | {'; '.join(figures)} |")
    return "\n".join(lines)


def main(
    folder: Path, out: Path, *, corpus: Path | None = None, part: tuple[str, ...] = tuple(PARTS), seconds: float = 3.0,
    repeat: int = 3, checks: int = 1,
) -> None:  # fmt: skip
    warnings.simplefilter("ignore")
    bed = Bed(folder, corpus, Effort(seconds=seconds, checks=checks))
    machine = conditions(bed.device.name)
    rows: list[Row] = []
    for name in part:
        for row in PARTS[name](bed, repeat):
            rows.append({"ok": False, **row})
            if not (rows[-1]["ok"] and name == "corpora"):
                say(line(rows[-1]))
            write_table(out, machine, rows)
    bed.device.close()
    print(table(rows))


if __name__ == "__main__":
    command_line(main)

"""Recorded conversations of a language model (``cutegen_lab/replays``): verdicts, times (predicted here, measured on a
GPU), and what the conversations took.

    python -m benchmarks.models.conversations play FOLDER OUT.json [NAME …]   (needs the DSL; no GPU)
    python -m benchmarks.models.conversations policies PLAYED.json OUT.json   (needs nothing else)
    python -m benchmarks.models.conversations prepare FOLDER CUBINS           (needs the DSL; no GPU)
    python -m benchmarks.models.conversations measure CUBINS OUT.json         (needs a GPU and torch; no DSL)

``play`` replays each conversation through the loop, on the emulator, in a store FOLDER/NAME, unless that has its
finished run; ``policies`` computes what budget policies would have saved; ``prepare`` compiles the first and the last
accepted kernel for all workloads that are judged on a GPU; ``measure`` judges and times these.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    command_line,
    compiled,
    conditions,
    for_each,
    head_of,
    read_json,
    required,
    say,
    timing_facts,
    write_json,
    write_table,
)
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.gains import floor_us
from cutegen_lab.core.idea_results import expectations
from cutegen_lab.core.predicted import AT_THE_FLOOR
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.run import Budget, RunSettings, RunState
from cutegen_lab.problems import read_file

REPLAYS = Path(__file__).parents[2] / "cutegen_lab/replays"
GPU = GPUS["H200"]
COVERED = "decode_linear"  # templates serve it: notebook 05 plays it
MODEL = ("replay", "manual")  # providers by which a recorded model answers
WORTH = 0.01  # fraction of its parent's time that a refinement must save to count as a gain


def recordings(names: tuple[str, ...] = ()) -> list[Path]:
    """The conversations, by name."""
    found = sorted(path for path in REPLAYS.glob("*.jsonl") if not names or path.stem in names)
    return [path for path in found if path.stem != COVERED]


def play(folder: Path, out: Path, *names: str) -> None:
    """Replays the conversations and writes what came of each."""
    from cutegen_lab.session import Session

    rows = []
    for path in recordings(names):
        settings = RunSettings(
            provider=f"replay:{path}", device="emulator", auto=True, strategy="two-stage", budget=Budget(max_steps=20)
        )
        with Session.open(folder / path.stem) as session:
            ended = [run.run_id for run in session.runs() if run.outcome]
            handle = (
                session.attach(ended[0]) if ended else session.run(read_file(REPLAYS / f"{path.stem}.py"), settings)
            )
            state = handle.state
        rows.append({"problem": path.stem, **summary(state, path)})
        say(json.dumps(rows[-1]))
        write_json(out, conditions("emulator"), conversations=rows)


def summary(state: RunState, recording: Path) -> dict[str, Any]:
    """What a conversation took and what came of it."""
    candidates = []
    usages = [TokenUsage(**each["usage"]) for each in exchanges(recording)]
    unread = iter(usages)
    for candidate in state.candidates.values():
        trial, proposal = state.trials.get(candidate.id), candidate.proposal
        candidates.append(
            {
                "id": candidate.id, "parent": candidate.parent_id, "by": candidate.provider, "title": proposal.title,
                "verdict": trial.verdict.value if trial else "not judged",
                "predicted_us": trial.timing.time_us if trial and trial.timing else None,
                "floor_us": floor_us(trial, state) if trial and trial.timing else None,
                "accepted": candidate.id in state.accepted,
                "tokens": sum(each.total for each in islice(unread, len(proposal.prompts))),
                "at_the_floor": bool(trial and trial.profile and AT_THE_FLOOR in trial.profile.limiter),
            }
        )  # fmt: skip
    written = [each for each in candidates if each["by"] in MODEL]
    first = next((n for n, each in enumerate(written, 1) if each["verdict"] == "passed"), None)
    best = state.trials.get(state.incumbent_id or "")
    return {
        "turns_to_first_correct": first,
        "refine_turns": len(refinements(state)),
        "refine_turns_that_gained": sum(gain >= WORTH for gain in refinements(state)),
        "at_the_floor": any(each["at_the_floor"] and each["accepted"] for each in candidates),
        "answers": len(usages),
        "tokens": sum(each.total for each in usages),
        "uncached_tokens": sum(each.total - each.cached for each in usages),
        "first_us": next((each["predicted_us"] for each in written if each["verdict"] == "passed"), None),
        "best_us": best.timing.time_us if best and best.timing else None,
        "floor_us": floor_us(best, state) if best else None,
        "expectations_that_held": [sum(each.held for each in expectations(state)), len(expectations(state))],
        "candidates": candidates,
    }


def refinements(state: RunState) -> list[float]:
    """For each of the model's refinements, the fraction of the accepted kernel's time that it saved; 0 if it failed."""
    found = []
    for candidate in state.candidates.values():
        before, after = (state.trials.get(each or "") for each in (candidate.parent_id, candidate.id))
        if candidate.provider not in MODEL or before is None or before.timing is None or not before.verdict.passed:
            continue
        passed = after is not None and after.verdict.passed and after.timing is not None
        found.append(1 - after.timing.time_us / before.timing.time_us if passed and after and after.timing else 0.0)
    return found


def exchanges(recording: Path) -> Iterator[dict[str, Any]]:
    for line in recording.read_text().splitlines()[1:]:
        yield json.loads(line)


def policies(played: Path, out: Path) -> None:
    """What budget policies would have saved on the conversations in PLAYED, which ``play`` wrote."""
    from cutegen_lab.suite.courses import Attempt, Course
    from cutegen_lab.suite.policies import replays, replays_text

    record = read_json(played)
    courses = [
        Course(
            each["problem"],
            tuple(
                Attempt(c["tokens"], c["predicted_us"], c["floor_us"]) if c["accepted"] else Attempt(c["tokens"])
                for c in each["candidates"]
            ),
        )
        for each in record["conversations"]
    ]
    found = replays(courses)
    print(replays_text(found))
    write_table(out, head_of(record), map(asdict, found))


def prepare(folder: Path, cubins: Path) -> None:
    """Compiles the first and the last accepted kernel of each run that ``play`` left in FOLDER."""
    from cutegen_lab.compile import CageCompiler
    from cutegen_lab.session import Session

    kernels: list[tuple[str, str, str]] = []
    for path in recordings():
        if not (folder / path.stem).is_dir():
            continue
        with Session.open(folder / path.stem) as session:
            state = session.attach(session.runs()[0].run_id).state
        chosen = dict.fromkeys((state.accepted[0], state.accepted[-1]))
        kernels += [(path.stem, each, state.candidates[each].source) for each in chosen]

    def write(kernel: tuple[str, str, str], compiler: CageCompiler) -> None:
        name, candidate_id, source = kernel
        problem = read_file(REPLAYS / f"{name}.py")
        built = compiled(compiler, source, {}, (*problem.check_workloads, *problem.workloads))
        artifact = required(f"{name} {candidate_id}", built).to_dict()
        write_json(
            cubins / f"{name}-{candidate_id}.json", {"problem": name, "candidate": candidate_id}, artifact=artifact
        )

    for_each(kernels, cubins, write)


def measure(cubins: Path, out: Path) -> None:
    """Judges and times what ``prepare`` wrote, each kernel in the same rounds as PyTorch and a copy of its bytes."""
    from cutegen_lab.devices.cuda import CudaDevice
    from cutegen_lab.judge import StandardJudge

    warnings.simplefilter("ignore")
    device, judge, cancel = CudaDevice(), StandardJudge(), threading.Event()
    rows: list[dict[str, Any]] = []
    for path in sorted(cubins.glob("*.json")):
        entry = read_json(path)
        problem, artifact = read_file(REPLAYS / f"{entry['problem']}.py"), Artifact.from_dict(entry["artifact"])
        result = judge.check(problem, artifact, device, print, cancel)
        row = {"problem": entry["problem"], "candidate": entry["candidate"], "verdict": result.verdict.value,
               "reason": result.reason, "checks": len(result.checks)}  # fmt: skip
        if result.verdict.passed:
            timing, _ = judge.time(problem, artifact, device, GPU, print, cancel)
            row |= timing_facts(timing)
        rows.append(row)
        say(json.dumps(row))
        write_json(out, conditions(device.name), kernels=rows)
    device.close()


if __name__ == "__main__":
    command_line(play, policies, prepare, measure)

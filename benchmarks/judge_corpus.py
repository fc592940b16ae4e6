"""The judge's corpus as compiled artifacts, so that a GPU machine with torch alone can judge it.

    python -m benchmarks.judge_corpus FOLDER [--only cheats|honest]     (needs the DSL; no GPU)

Writes ``FOLDER/NAME.json`` for each kernel of ``tests/cheats`` that compiles and each of ``tests/honest``: its name,
the problem's text and inputs, the verdicts that are right, and the artifact with one build for each workload. A cheat
that does not compile was caught already; the last line counts them.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cutegen_lab.compile import CageCompiler, Limits
from cutegen_lab.core.artifact import Artifact
from cutegen_lab.problems import read_text
from tests.cheats import corpus as cheats
from tests.honest import corpus as honest

ARCH = "sm_90a"
LIMITS = Limits(cpu_seconds=10)  # one cheat computes for ever while it is imported


@dataclass(frozen=True)
class Entry:
    """One kernel of either corpus. ``open_reason``: why the emulator's judge accepts it today, where it should not."""

    name: str
    problem: str
    inputs: str
    source: str
    expect: tuple[str, ...]
    open_reason: str = ""


def cheating() -> Iterator[Entry]:
    for found in cheats.corpus():
        name = f"cheat-{found.name.replace('@', '-')}"
        expect = tuple(verdict.value for verdict in found.expect)
        yield Entry(name, found.problem, "", found.source, expect, found.open_reason)


def passing() -> Iterator[Entry]:
    for found in honest.corpus():
        yield Entry(f"honest-{found.name}", found.problem, found.inputs, found.source, ("passed",))


def export(entry: Entry, folder: Path, compiler: CageCompiler) -> bool:
    """Whether there was an artifact to write. Raises SystemExit for an honest kernel that does not compile."""
    problem = read_text(entry.problem, name=entry.name, inputs_text=entry.inputs)
    workloads = (*problem.check_workloads, *problem.workloads)
    artifact = compiler.compile(entry.source, {}, workloads, ARCH, lambda line: None, threading.Event())
    if not isinstance(artifact, Artifact):
        if "passed" in entry.expect or artifact.verdict.value not in entry.expect:
            raise SystemExit(f"{entry.name}: {artifact.verdict.value}, {artifact.reason}")
        return False
    data = {
        "name": entry.name, "problem": entry.problem, "inputs": entry.inputs, "expect": list(entry.expect),
        "open_reason": entry.open_reason, "artifact": artifact.to_dict(),
    }  # fmt: skip
    (folder / f"{entry.name}.json").write_text(json.dumps(data))
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=("cheats", "honest"))
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    entries = [
        *(cheating() if arguments.only != "honest" else ()),
        *(passing() if arguments.only != "cheats" else ()),
    ]
    with CageCompiler(folder / "cache", limits=LIMITS) as compiler, ThreadPoolExecutor(2) as threads:
        written = list(threads.map(lambda entry: export(entry, folder, compiler), entries))
    print(
        f"{sum(written)} artifacts in {folder}; {len(written) - sum(written)} cheats were caught before there was one"
    )


if __name__ == "__main__":
    main()

"""Where the seconds of ``cutegen run``, ``judge`` and ``tune`` go, on the device they find.

    python -m benchmarks.session_times OUT.json [--case NAME ...]   (needs the DSL)

Runs each command in a folder of its own, as a person would, with a limit; notes when each line of its progress came
and, of a run, when each step of each candidate began and ended. Prints a table; writes everything.

Notes whether torch has its bytecode, as pip leaves it. A container built without it compiles every module at each
start: importing torch alone takes 5 s for 2.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import command_line, conditions, say, write_json
from cutegen_lab.cli.doctor import bytecode_of
from cutegen_lab.core.run import StepStarted
from cutegen_lab.session.factories import make_device
from cutegen_lab.stores.sqlite import SqliteStore

LIMIT_SECONDS = 150.0
SOFTMAX = "def reference(x):  # x: bf16[32768,8192]\n    return torch.softmax(x, -1)\n"
ADD_NORM = (
    "def reference(x, r, w):  # x: bf16[12000,7168], r: bf16[12000,7168], w: bf16[7168]\n"
    "    return F.rms_norm(x + r, w.shape, w, 1e-6)\n"
)
PRODUCT = (
    "def reference(a, b, c):  # a: bf16[4096,5120], b: bf16[13824,5120], c: bf16[13824]\n"
    "    return F.gelu(F.linear(a, b, c))\n"
)
WITHOUT_MAXIMUM = ("cute.math.exp(x - peak", "cute.math.exp(x")


@dataclass(frozen=True)
class Case:
    """One command on a reference; ``command`` has its words but for the problem's and the kernel's file."""

    problem: str
    command: tuple[str, ...]
    broken: bool = False  # asks the judge for a wrong kernel, after the templates wrote it


CASES = {
    "run-softmax": Case(SOFTMAX, ("run", "--auto", "--max-steps", "4")),
    "run-add-norm": Case(ADD_NORM, ("run", "--auto", "--max-steps", "4")),
    "run-product": Case(PRODUCT, ("run", "--auto", "--max-steps", "4")),
    "judge-wrong-softmax": Case(SOFTMAX, ("judge",), broken=True),
    "tune-product": Case(PRODUCT, ("tune", "--budget", "40")),
    "tune-softmax": Case(SOFTMAX, ("tune", "--budget", "40")),
}


def measured(case: Case, folder: Path) -> dict[str, Any]:
    problem, store = folder / "problem.py", folder / "store"
    problem.write_text(case.problem)
    files = [str(problem)]
    if case.broken:
        kernel = folder / "kernel.py"
        small = folder / "small.py"
        small.write_text(case.problem.replace("32768", "64"))
        first = ("run", "--auto", "--general", "--max-steps", "1", "--device", "emulator")
        _watched([*first, "--workdir", str(folder / "small"), "--out", str(kernel), str(small)])
        text = kernel.read_text()
        kernel.write_text(text.replace(*WITHOUT_MAXIMUM))
        assert kernel.read_text() != text
        files.append(str(kernel))
    lines, seconds, status = _watched([*case.command, "--workdir", str(store), *files])
    row = {"command": " ".join(case.command), "seconds": seconds, "status": status, "lines": lines}
    began = time.time() - seconds  # by the clock of the store's events
    return row | ({"steps": _steps(store, began)} if case.command[0] == "run" else {})


def _watched(words: Sequence[str]) -> tuple[list[tuple[float, str]], float, int]:
    """Each line of progress and when it came, how long all took, and the exit status (-9: over the limit)."""
    started = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "cutegen_lab", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    limit = threading.Timer(LIMIT_SECONDS, process.kill)
    limit.start()
    assert process.stdout is not None
    lines = [(round(time.perf_counter() - started, 2), line.rstrip()) for line in process.stdout]
    status = process.wait()
    limit.cancel()
    return lines, round(time.perf_counter() - started, 2), status


def _steps(folder: Path, began: float) -> list[dict[str, Any]]:
    """When each step of each candidate began, in seconds after the command, and how long it took."""
    store, found, last = SqliteStore(folder / "lab.db"), list[dict[str, Any]](), None
    (run,) = store.runs()
    for stored in store.events(run.run_id):
        if last is not None:
            last["seconds"] = round(stored.at - began - last["after"], 2)
        event, last = stored.event, None
        if isinstance(event, StepStarted):
            last = {"step": event.step.value, "candidate": event.candidate_id, "after": stored.at - began}
            found.append(last)
    store.close()
    return [step | {"after": round(step["after"], 2)} for step in found]


def main(out: Path, *, case: tuple[str, ...] = tuple(CASES)) -> None:
    bytecode, rows = bytecode_of("torch"), dict[str, Any]()
    head = conditions(make_device("auto").name) | {"bytecode": bytecode is not None and bytecode.is_file()}
    for name in case:
        with tempfile.TemporaryDirectory(prefix="session-times-") as folder:
            rows[name] = measured(CASES[name], Path(folder))
        say(f"{name}: {rows[name]['seconds']} s, exit {rows[name]['status']}")
        for step in rows[name].get("steps", ()):
            print(f"  {step['after']:7.2f} {step['step']:10} {step['candidate'] or '':4} {step.get('seconds', '')}")
        write_json(out, head, cases=rows)


if __name__ == "__main__":
    command_line(main)

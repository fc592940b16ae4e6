"""A kernel's file judged again by ``cutegen judge`` in a process of its own, as its receiver would."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from cutegen_lab import __version__
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.run import RunState

_SECONDS = 1200.0
_JUDGED = (0, 3)  # exit statuses that mean a verdict


def judged_again(state: RunState, text: str) -> str:
    """A line with the verdict of a fresh process on the kernel file ``text``, or why there is none. Raises InputError
    if the kernel does not pass."""
    found = _verdict(state, text)
    if isinstance(found, str):
        return f"not judged again: {one_line(found)[:200]}"
    if found["provenance"]["problem_key"] != state.problem.key:
        return "not judged again: the reference's text, read from a file, is another problem"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    if found["verdict"] != "passed":
        raise InputError(
            f"judged again in a fresh process, the kernel got the verdict {found['verdict']}: "
            f"{one_line(found['reason'])}",
            Hint(Advice.WITHOUT_VERIFYING),
        )
    names = ", ".join(dict.fromkeys(one_line(check["workload"]) for check in found["checks"]))
    return (
        f"judged again in a fresh process on {day} by cutegen-lab {__version__}: passed on {found['device']} "
        f"({found['reason']}; workloads {names})"
    )


def _verdict(state: RunState, text: str) -> dict[str, Any] | str:
    """The answer of ``cutegen judge --json``, or why there is none."""
    of = state.settings
    with tempfile.TemporaryDirectory(prefix="cutegen-judge-") as folder:
        problem, kernel = Path(folder, "problem.py"), Path(folder, "kernel.py")
        problem.write_text(state.problem.source, encoding="utf-8", newline="")
        kernel.write_text(text, encoding="utf-8", newline="")
        command = [sys.executable, "-P", "-m", "cutegen_lab", "judge", str(problem), str(kernel), "--json",
                   "--device", of.device, "--arch", of.arch, "--gpu", of.gpu]  # fmt: skip
        if state.problem.inputs_text:
            command.append(f"--inputs={state.problem.inputs_text}")
        try:
            done = subprocess.run(  # noqa: S603 - this package
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"it took over {_SECONDS / 60:.0f} minutes"
    if done.returncode not in _JUDGED:
        return _why_not(done)
    return dict(json.loads(done.stdout))


def _why_not(done: subprocess.CompletedProcess[str]) -> str:
    """The error that ended the process, without its hint, which is about options of that process."""
    with suppress(ValueError):
        if reason := json.loads(done.stdout)["reason"]:
            return str(reason)
    return (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]

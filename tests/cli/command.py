"""``cutegen`` for tests: in this process, where PyTorch is loaded already, or in one of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from unittest import mock

from cutegen_lab.cli import main
from tests.harness.keeping import BUILDS

ROOT = Path(__file__).parents[2]
KERNEL = Path(__file__).with_name("softmax_kernel.py")  # right for the problem of the fixture ``place``


@dataclass(frozen=True)
class Done:
    """As ``subprocess.CompletedProcess``."""

    returncode: int
    stdout: str
    stderr: str


def cutegen(place: Path, *arguments: str, input: str = "") -> Done:
    """One command, as if typed in ``place``: its exit status and what it wrote, file descriptors' own writers too."""
    with (
        contextlib.chdir(place),
        mock.patch.dict(os.environ, environment(place), clear=True),
        mock.patch.object(sys, "stdin", io.StringIO(input)),
        warnings.catch_warnings(),
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as errors,
    ):
        with _written_to(1, "stdout", out), _written_to(2, "stderr", errors):
            try:
                status = main(list(arguments))
            except SystemExit as end:  # of --help and --version
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
        return Done(status, _text(out), _text(errors))


def cutegen_process(place: Path, *arguments: str, **extra: str) -> Done:
    """As :func:`cutegen`, in a process of its own; ``extra`` goes to its environment."""
    command = [sys.executable, "-m", "cutegen_lab", *arguments]
    done = subprocess.run(  # noqa: S603
        command, cwd=place, env=environment(place, **extra), capture_output=True, text=True, timeout=280
    )
    return Done(done.returncode, done.stdout, done.stderr)


def start(place: Path, command: list[str]) -> subprocess.Popen[str]:
    """A process that Ctrl-C reaches: a suite in a shell's background ignores SIGINT, which children would inherit."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(  # noqa: S603
            command, cwd=place, env=environment(place), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)


def environment(place: Path, **extra: str) -> dict[str, str]:
    """No keys, and nothing of the user's: runs are kept in ``place``, builds where other tests keep theirs."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "CUTEGEN_"))}
    own = {"CUTEGEN_HOME": str(place / "lab"), "CUTEGEN_CACHE": os.environ[BUILDS], "NO_COLOR": "1"}
    return {**kept, "PYTHONPATH": str(ROOT), **own, **extra}


def only_object(done: Done) -> dict[str, Any]:
    assert done.stdout.count("\n") == 1, done.stdout
    data = json.loads(done.stdout)
    assert {"verdict", "reason"} <= set(data)
    return dict(data)


@contextlib.contextmanager
def _written_to(descriptor: int, name: str, file: IO[str]) -> Iterator[None]:
    """What is written to a descriptor, and to ``sys``' stream over it, goes to ``file``."""
    before = os.dup(descriptor)
    os.dup2(file.fileno(), descriptor)
    try:
        with open(descriptor, "w", closefd=False) as stream, mock.patch.object(sys, name, stream):
            yield
    finally:
        os.dup2(before, descriptor)
        os.close(before)


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()

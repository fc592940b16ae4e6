"""A copy of the tree with one fault in it, and the first test that fails there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FAULTS = Path(__file__).with_name("faults")
# Tests that are asked first, by area; then all the others.
NEAR = {
    "templates": ("tests/templates", "tests/cutespec"),
    "emulator": ("tests/emulator", "tests/devices"),
    "judge": ("tests/judge", "tests/honest", "tests/cheats"),
}
BUILT = ("cutegen_lab/labextension", "cutegen_lab/notebook/static")  # not in git, and some tests look at them
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Planted:
    """A patch. ``why`` says what is wrong with the product that has it."""

    patch: Path

    @property
    def name(self) -> str:
        return self.patch.stem

    @property
    def area(self) -> str:
        return self.patch.parent.name

    @property
    def why(self) -> str:
        return self.patch.read_text().partition("\n\n---")[0]


@dataclass(frozen=True)
class Outcome:
    """``caught_by`` is the first test that failed, empty where none did. ``seconds`` are those of the tests."""

    name: str
    area: str
    caught_by: str
    seconds: float


def planted(names: Sequence[str] = ()) -> list[Planted]:
    """All faults, or those of these names or areas. Raises SystemExit for a name that there is not."""
    every = [Planted(path) for path in sorted(FAULTS.glob("*/*.patch"))]
    if unknown := set(names) - {f.name for f in every} - {f.area for f in every}:
        raise SystemExit(f"no such fault: {', '.join(sorted(unknown))}; there are {', '.join(f.name for f in every)}")
    return [fault for fault in every if not names or fault.name in names or fault.area in names]


def copied(tree: Path, to: Path) -> None:
    """The files of ``tree`` that git knows, as they are now, and what was built from them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=tree, capture_output=True, text=True, check=True)  # noqa: S607
    for name in filter(None, listed.stdout.split("\0")):
        if (tree / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree / name, to / name)
    for name in BUILT:
        if (tree / name).is_dir():
            shutil.copytree(tree / name, to / name, dirs_exist_ok=True)


def tried(fault: Planted, copy: Path, near: bool = False) -> Outcome:
    """What the tests of ``copy`` say with ``fault`` in it, all of them or those of its area (``near``); ``copy`` is as
    before afterwards.

    Raises SystemExit where the patch no longer fits, or a test fails that fails without the fault too.
    """
    _git(copy, "apply", str(fault.patch))
    try:
        started = time.monotonic()
        first = NEAR[fault.area]
        folders = {f"tests/{path.parent.relative_to(copy / 'tests')}" for path in copy.glob("tests/*/test_*.py")}
        others = sorted(folders - {*first, "tests/mutants"})
        failed = _failing(copy, first) or ("" if near else _failing(copy, others))
        seconds = time.monotonic() - started
    finally:
        _git(copy, "apply", "--reverse", str(fault.patch))
    if failed and _failing(copy, [failed]):
        raise SystemExit(f"{failed} fails without the fault {fault.name} too: put that right first")
    return Outcome(fault.name, fault.area, failed, seconds)


def _failing(copy: Path, tests: Sequence[str]) -> str:
    """The first of ``tests`` that fails; empty where all pass."""
    options = ["-x", "-q", "--no-header", "-o", "addopts=", "--strict-markers"]
    workers = ["-n", "auto", "--maxprocesses", "4"] if len(tests) > 1 else []
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pytest", *options, *workers, *tests],
        cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode == 0:
        return ""
    if found := _FAILED.search(done.stdout):
        return found[1]
    return f"(pytest ended with {done.returncode}: {done.stdout[-300:].strip()})"


def _git(copy: Path, *arguments: str) -> None:
    done = subprocess.run(["git", *arguments], cwd=copy, capture_output=True, text=True)  # noqa: S603, S607
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.strip()}")

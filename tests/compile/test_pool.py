"""The compile server starts wherever the package does."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ASK = """
import sys
from pathlib import Path
from cutegen_lab.compile import CageCompiler
with CageCompiler(Path(sys.argv[1])) as compiler:
    print(compiler.isolation_report())
"""


def test_packages_that_only_pythonpath_names_are_found(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    work = tmp_path / "work"
    work.mkdir()
    paths = [*map(os.path.abspath, filter(os.path.isdir, sys.path)), str(Path(__file__).parents[2]), str(work)]
    answer = subprocess.run(  # noqa: S603 - our own interpreter
        [tmp_path / "bare/bin/python", "-c", ASK, tmp_path / "cache"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "seccomp" in answer.stdout, answer.stderr

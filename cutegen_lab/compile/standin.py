"""Builds the stand-in CUDA runtime from ``runtime.c`` on first use, into the cache, named by its content."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cutegen_lab.core.errors import SetupError
from cutegen_lab.core.hashing import sha256

SOURCE = Path(__file__).with_name("runtime.c")
COMPILERS = ("cc", "gcc", "clang")
LIBRARY = "libcute_dsl_runtime.so"  # file name that the DSL looks for
_FLAGS = ("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror")


def standin_library(cache_dir: Path, compilers: Sequence[str] = COMPILERS) -> Path:
    """Path of the built library. Raises SetupError if there is no C compiler, or it fails."""
    source = SOURCE.read_text(encoding="utf-8")
    target = cache_dir / "standin" / sha256(source + " ".join(_FLAGS))[:16] / LIBRARY
    if target.exists():
        return target
    compiler = next((path for path in map(shutil.which, compilers) if path), None)
    if compiler is None:
        raise SetupError(
            f"no C compiler found (looked for {', '.join(compilers)}), and the launch recorder needs one once",
            "Install gcc or clang, for example: apt-get install gcc, or conda install -c conda-forge gcc.",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=target.parent, suffix=".so")
    os.close(handle)
    try:
        done = subprocess.run(  # noqa: S603 - a compiler found on PATH, on our own source
            [compiler, *_FLAGS, "-o", partial, str(SOURCE)], capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode:
            first = (done.stderr.strip() or "no message").splitlines()[0]
            raise SetupError(
                f"{compiler} could not build the launch recorder: {first}", "Install a working gcc or clang."
            )
        Path(partial).replace(target)
    finally:
        Path(partial).unlink(missing_ok=True)
    return target

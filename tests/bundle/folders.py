"""Small packages on disk, and what a bundle of them computes."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

from cutegen_lab.bundle import Bundle, bundle


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))


def bundled(folder: Path, files: dict[str, str], *given: str, entry: str = "launch") -> Bundle:
    """``given`` are the files named on the command line (default: the first)."""
    write(folder, files)
    return bundle([folder / name for name in given or list(files)[:1]], entry)


def ran(made: Bundle) -> dict[str, Any]:
    """The names that a bundle defines."""
    names: dict[str, Any] = {}
    exec(compile(made.text, "bundle.py", "exec", dont_inherit=True), names)  # noqa: S102 - written by the test
    return names

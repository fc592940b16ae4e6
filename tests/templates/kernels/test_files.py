"""Kernel files are whole modules, and nobody imports them but to compile."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cutegen_lab
from cutegen_lab.compile import gate
from cutegen_lab.templates.emit.bundle import OVERRIDES, kernel_file

PACKAGE = Path(cutegen_lab.__file__).parent
FOLDER = PACKAGE / "templates" / "kernels"
FILES = sorted(path for path in FOLDER.rglob("*.py") if path.name != "__init__.py")
SOURCES = [path for path in FILES if path.parent.name != "limits"]
BY_PROBLEM = "Placeholder, replaced in a generated module"  # said of a function that generated text overrides
GENERATED = {"@cute.jit"}  # CuTe in literals of families: the head of generated functions
IMPORT = "import sys, importlib; [importlib.import_module(name) for name in sys.argv[1:]]"


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def test_each_can_be_imported_as_it_is() -> None:
    pytest.importorskip("cutlass")
    command = [sys.executable, "-c", IMPORT, *map(dotted, FILES)]
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603 - our own files
    assert done.returncode == 0, done.stderr


def test_nobody_imports_one() -> None:
    """Rules aside, which are plain Python."""
    kernels = {dotted(path) for path in SOURCES}
    for path in PACKAGE.rglob("*.py"):
        if FOLDER in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            assert not kernels & {*names}, f"{path} imports a kernel"


def test_no_literal_holds_a_kernel() -> None:
    """Kernels are source. A literal of several lines may hold no more of CuTe than the ``launch`` that mounts an
    attack."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            parts = [node] if isinstance(node, ast.Constant) else node.values if isinstance(node, ast.JoinedStr) else []
            text = "".join(
                part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
            if "\n" in text and ("@cute." in text.replace("@cute.jit\ndef launch(", "") or "\nimport cutlass" in text):
                found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert not found


def test_families_and_pipelines_hold_no_statement_of_a_kernel() -> None:
    """What kernels and launches do stands in kernel files; expressions are written by ``emit/cute_text.py``."""
    found = [
        f"{path.name}:{node.lineno}: {node.value}"
        for room in ("families", "frontend", "pipeline")
        for path in sorted((PACKAGE / "templates" / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in GENERATED
        if "cute." in node.value or "cutlass." in node.value
    ]
    assert not found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_each_definition_has_one_place(path: Path) -> None:
    """No name stands for two things among a file and those that it borrows from."""
    name = ".".join(path.relative_to(FOLDER).with_suffix("").parts)
    for file in kernel_file(name).files():
        for borrowed, source in file.borrowed.items():
            assert borrowed in source.definitions and borrowed not in file.definitions


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_file_overrides_what_it_says(path: Path) -> None:
    file = kernel_file(".".join(path.relative_to(FOLDER).with_suffix("").parts))
    twice = {
        name
        for other in file.files()
        for name in file.definitions.keys() & other.definitions.keys() - {"__all__", OVERRIDES}
        if other is not file and BY_PROBLEM not in file.definitions[name]
    }
    assert twice == file.overrides


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.name == "limits"], ids=lambda path: path.stem)
def test_limits_are_for_modules_to_carry(path: Path) -> None:
    """They import what a candidate may."""
    source = path.read_text() + "\n\ndef launch():\n    pass\n"
    assert not [d for d in gate.check(source) if d.code != gate.NO_LAUNCH]

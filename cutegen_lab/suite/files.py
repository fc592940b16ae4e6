"""Which files of a suite are problems: names and KernelBench levels. Other benchmarks define problems in JSON
(:mod:`cutegen_lab.suite.traces`)."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cutegen_lab.core.errors import CutegenError, InputError
from cutegen_lab.core.plain_text import plain
from cutegen_lab.core.syntax import parse_problem
from cutegen_lab.session.kernels import read_text_file
from cutegen_lab.suite.traces import is_definition, problem_name

_LEVEL = re.compile(r"level_?(\d+)", re.IGNORECASE)
_REFERENCE, _KERNELBENCH = {"reference"}, {"Model", "get_inputs"}


@dataclass(frozen=True)
class ProblemFile:
    """A file of a suite."""

    path: Path
    """The file."""
    name: str
    """Its path from the folder that was given, without suffix: ``level1/19_ReLU``."""
    level: int | None
    """Number of the innermost folder ``levelN`` that contains it; None without one."""

    @property
    def alone(self) -> bool:
        """Whether no other problem may run at the same time: its text seems to change PyTorch's default dtype or
        device, which are global to all threads."""
        try:
            return "set_default_" in read_text_file(self.path)
        except CutegenError:
            return False


def problem_files(paths: Iterable[Path], levels: Collection[int] = ()) -> list[ProblemFile]:
    """The problems among ``paths``, each once: files as given, and files below folders that define a problem or do not
    parse. ``levels``: only these KernelBench levels. Raises InputError for a missing path or if nothing is left."""
    given = list(paths)
    found = {file.path.resolve(): file for path in given for file in _below(path)}
    chosen = [file for file in found.values() if not levels or file.level in levels]
    if not chosen:
        raise _nothing(given, list(found.values()), levels)
    return chosen


def is_problem(source: str) -> bool:
    """Whether ``source`` defines ``reference``, or KernelBench's ``Model`` and ``get_inputs``. Raises ProblemError for
    text that is not Python."""
    names = set(_defined(parse_problem(source)))
    return names >= _REFERENCE or names >= _KERNELBENCH


def level_of(path: Path) -> int | None:
    """Number of the innermost folder ``levelN`` above ``path``."""
    found = (_LEVEL.fullmatch(part) for part in reversed(path.resolve().parent.parts))
    return next((int(match[1]) for match in found if match), None)


def _below(path: Path) -> Iterator[ProblemFile]:
    if not path.exists():
        raise InputError(f"{path} does not exist", "Give files of problems, or folders with such files.")
    if not path.is_dir():
        yield ProblemFile(path, plain(Path(problem_name(path)).name), level_of(path))
        return
    for file in sorted(_files(path), key=_natural):
        if _belongs(file):
            below = file.relative_to(path)
            named = problem_name(below if below.parent.name or file.name != "definition.json" else file)
            yield ProblemFile(file, plain(named), level_of(file))


def _files(folder: Path) -> Iterator[Path]:
    """Python files and JSON files below a folder."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        yield from (Path(place, name) for name in files if name.endswith((".py", ".json")) and not name.startswith("."))


def _belongs(path: Path) -> bool:
    """Whether a file of a folder gets a row: a problem, or one that cannot be read or parsed."""
    if path.suffix == ".json":
        return is_definition(path)
    try:
        source = read_text_file(path)
        return bool(source.strip()) and is_problem(source)  # packages have empty files
    except CutegenError:
        return True


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Assign():
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))
            case ast.Import() | ast.ImportFrom():
                yield from (each.asname or each.name for each in node.names)


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort key by which ``2_a`` comes before ``10_a``."""
    parts = re.split(r"(\d+)", path.as_posix())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _nothing(given: Sequence[Path], found: Sequence[ProblemFile], levels: Collection[int]) -> InputError:
    where = ", ".join(map(str, given))
    if not found:
        return InputError(
            f"no problem in {where}", "A problem defines reference(), or KernelBench's Model and get_inputs()."
        )
    known = ", ".join(str(level) for level in sorted({file.level for file in found if file.level is not None}))
    wanted = ", ".join(map(str, sorted(levels)))
    return InputError(f"no problem of level {wanted} in {where}", f"Levels there: {known or 'none'}.")

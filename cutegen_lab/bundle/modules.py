"""Files of a bundle: resolution of imports, and top-level definitions."""

from __future__ import annotations

import ast
import io
import os
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cutegen_lab.compile.gate import ALLOWED_IMPORTS, HARMLESS_NAMES
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.syntax import parse

MAX_FILE_BYTES = 4 << 20
_PROJECT_FILES = (".git", "pyproject.toml", "setup.py", "setup.cfg")  # files that mark the top folder of a checkout
_STARTS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Import:
    """The target of a name that an import statement binds: ``module``, or ``name`` in it. ``level`` counts leading
    dots.

    ``root`` is set for a plain ``import a.b``, which binds ``a`` and loads ``a.b``.
    """

    module: str
    name: str
    level: int
    line: int
    root: str = ""


@dataclass(eq=False)
class Unit:
    """One top-level statement and the names that it binds."""

    module: Module
    node: ast.stmt
    binds: frozenset[str]
    changes: frozenset[str] = frozenset()  # names it calls, or whose attributes, items or methods it sets or calls

    @property
    def line(self) -> int:
        """Line of its first decorator, or its own."""
        decorators = self.node.decorator_list if isinstance(self.node, _STARTS) else []
        return min([self.node.lineno, *(decorator.lineno for decorator in decorators)])

    def __repr__(self) -> str:
        return f"<{self.module.label}:{self.line} {', '.join(sorted(self.binds))}>"


@dataclass(eq=False)
class Module:
    """A file: its text, its top-level statements, and the targets of its imports."""

    path: Path
    label: str  # path to show, relative to the folder that contains the package
    text: str
    tree: ast.Module
    units: list[Unit] = field(default_factory=list)
    imports: dict[str, list[Import]] = field(default_factory=dict)  # alternative targets, in the order of the text
    stars: list[tuple[Import, int]] = field(default_factory=list)
    future_annotations: bool = False

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def by_name(self) -> dict[str, list[Unit]]:
        found: dict[str, list[Unit]] = {}
        for unit in self.units:
            for name in unit.binds:
                found.setdefault(name, []).append(unit)
        return found

    def offset(self, line: int, column: int) -> int:
        """Index in ``text`` of an ``ast`` position, whose column is in bytes."""
        before = self.lines[line - 1].encode()[:column].decode(errors="ignore")
        return self._starts[line - 1] + len(before)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)


class Finder:
    """Reads each file once. Imports are followed only into the folders, packages and checkouts of the given files;
    relative imports and links that lead outside are refused."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._given = [path.resolve() for path in files]
        self._tops = tuple(dict.fromkeys(_top(path) for path in self._given))
        self._read: dict[Path, Module] = {}

    def read(self, path: Path) -> Module:
        """The module at ``path``. Raises InputError."""
        place = path.resolve()
        if not self._may_read(place):
            raise InputError(
                f"{path} is a link to {place}, outside the folders of the files given",
                "If it belongs to the kernel, give that file too.",
            )
        if place not in self._read:
            self._read[place] = _read(place, self._label(place))
        return self._read[place]

    def _may_read(self, place: Path) -> bool:
        return any(place.is_relative_to(top) for top in self._tops)

    def absolute(self, dotted: str, importer: Path) -> Path | None:
        """File of module ``dotted``, or folder of a namespace package; None if it is not a local module."""
        first, *rest = dotted.split(".")
        if comes_along(dotted) or comes_along(first):
            return None
        for start in (importer, *self._given):
            for folder in start.parents:
                if folder.name == first and self._may_read(folder) and (found := _below(folder, rest)):
                    return found
            if found := _below(start.parent / first, rest):
                return found
        return None

    def relative(self, dotted: str, level: int, importer: Path) -> Path | None:
        folders = importer.resolve().parents
        if len(folders) < level or not self._may_read(folders[level - 1]):
            return None
        return _below(folders[level - 1], dotted.split(".") if dotted else [])

    def below(self, package: Path, name: str) -> Path | None:
        """Submodule ``name`` of a package, which is given by its ``__init__.py`` or its folder."""
        folder = package.parent if package.name == "__init__.py" else package
        return _below(folder, [name]) if folder.is_dir() else None

    def _label(self, path: Path) -> str:
        top = path.parent
        while (top / "__init__.py").exists() and top.parent != top:
            top = top.parent
        return one_line(path.relative_to(top).as_posix())  # shown in comments of the bundle


def comes_along(dotted: str) -> bool:
    """Whether a candidate may import ``dotted`` (a module, or a name in one)."""
    if any(dotted == name or dotted.startswith(name + ".") for name in ALLOWED_IMPORTS):
        return True
    module, _, name = dotted.rpartition(".")
    return dotted in HARMLESS_NAMES or name in HARMLESS_NAMES.get(module, ())


def imports_of(node: ast.stmt) -> Iterator[tuple[str, Import]]:
    """Pairs of a bound name and its target for an import statement; a star import binds ``*``."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = "" if alias.asname or "." not in alias.name else alias.name.split(".")[0]
            yield alias.asname or root or alias.name, Import(alias.name, "", 0, node.lineno, root)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, Import(node.module or "", alias.name, node.level, node.lineno)


def _below(folder: Path, parts: Sequence[str]) -> Path | None:
    place = folder.joinpath(*parts)
    for path in (place / "__init__.py", place.with_name(place.name + ".py")):
        if path.is_file() and (path.name == "__init__.py" or parts or path.stem == folder.name):
            return path
    return place if place.is_dir() and any(place.glob("*.py")) else None


def _top(path: Path) -> Path:
    """Top folder of the project of ``path``: the checkout or working folder; the outermost package if it contains that
    folder or there is no such folder; otherwise the folder of ``path``."""
    here, home, package = Path.cwd().resolve(), Path.home().resolve(), _outermost_package(path)
    for folder in path.parents:
        if home.is_relative_to(folder):  # /, /home and a home folder are never projects
            break
        if folder == here or any(os.path.lexists(folder / name) for name in _PROJECT_FILES):
            return package if package is not None and folder.is_relative_to(package) else folder
    return package or path.parent


def _outermost_package(path: Path) -> Path | None:
    found = None
    for folder in path.parents:
        if not (folder / "__init__.py").exists():
            break
        found = folder
    return found


def _read(path: Path, label: str) -> Module:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path} is over {MAX_FILE_BYTES >> 20} MiB", "Give a Python source file.")
        text = _decoded(path.read_bytes()).replace("\r\n", "\n").replace("\r", "\n")
        tree = parse(text, label)
        if "\f" in text:
            text = _without_form_feeds(text, tree)
            tree = parse(text, label)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "Check the path.") from None
    except UnicodeDecodeError as error:
        name = (
            "UTF-8 text"
            if error.encoding.lower().startswith("utf-8")
            else f"valid {error.encoding}, the encoding that it declares"
        )
        raise InputError(f"{path} is not {name}", "Give a Python source file.") from None
    except SyntaxError as error:
        raise InputError(f"{label}:{error.lineno}: not valid Python: {error.msg}", "Correct the syntax.") from None
    module = Module(path, label, text, tree)
    for node in tree.body:
        _add(module, node)
    return module


def _decoded(data: bytes) -> str:
    """Text in the encoding that the first two lines declare, UTF-8 without a declaration, as Python reads it. Raises
    UnicodeDecodeError, and SyntaxError for an unknown encoding."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")).readline)
    try:
        return data.decode(encoding)
    except LookupError as error:  # a codec that is not for text
        raise SyntaxError(str(error)) from None


def _without_form_feeds(text: str, tree: ast.Module) -> str:
    """Replaces form feeds outside strings: they are white space, after which Python restarts counting indentation."""
    lines = text.split("\n")
    kept: list[tuple[tuple[int, int], tuple[int, int]]] = []  # strings: their first and last (line, byte)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))):
            assert node.end_lineno is not None and node.end_col_offset is not None
            kept.append(((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)))
    for at, line in enumerate(lines, 1):
        if "\f" not in line:
            continue
        new = b""
        for column, byte in enumerate(line.encode()):
            one = bytes([byte])
            if one == b"\f" and not any(first <= (at, column) < last for first, last in kept):
                new, one = (new, b" ") if new.strip() else (b"", b"")
            new += one
        lines[at - 1] = new.decode()
    return "\n".join(lines)


def _add(module: Module, node: ast.stmt) -> None:
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        module.future_annotations |= any(alias.name == "annotations" for alias in node.names)
        return
    if _is_main_guard(node) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return
    inside = list(_here(node))
    for statement in inside:
        for name, found in imports_of(statement):
            if name == "*":
                module.stars.append((found, statement.lineno))
            else:
                module.imports.setdefault(name, []).append(found)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return
    binds = {n.name for n in inside if isinstance(n, _STARTS)}
    changes: set[str] = set()
    for statement in inside:
        if not isinstance(statement, _STARTS):
            for part in _expressions(statement):
                binds |= _stored(part)
                changes |= _changed(part)
    module.units.append(Unit(module, node, frozenset(binds - {"__all__"}), frozenset(changes - binds)))


def _here(node: ast.stmt) -> Iterator[ast.stmt]:
    """``node`` and nested statements that are executed when the module is executed."""
    yield node
    if not isinstance(node, _STARTS):
        for child in ast.iter_child_nodes(node):
            for inner in [child] if isinstance(child, ast.stmt) else inner_body(child):
                yield from _here(inner)


def inner_body(node: ast.AST) -> list[ast.stmt]:
    """Statements of an ``except`` or ``case`` clause."""
    body = getattr(node, "body", None)
    return [child for child in body if isinstance(child, ast.stmt)] if isinstance(body, list) else []


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr
            if child.optional_vars:
                yield child.optional_vars


def _stored(expression: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(expression) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _changed(expression: ast.expr) -> set[str]:
    """Names that are called, or whose attributes, items or methods are assigned or called."""
    found = set()
    for node in ast.walk(expression):
        if (isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)) or isinstance(
            node, ast.Call
        ):
            root: ast.expr = node.func if isinstance(node, ast.Call) else node
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name):
                found.add(root.id)
    return found


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))

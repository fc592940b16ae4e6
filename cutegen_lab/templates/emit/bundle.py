"""Builds a module from generated text and the definitions it reaches in a kernel file.

A kernel file is a module of ``templates/kernels``: complete, valid CuTe source that is read and never imported. Two
more files belong to it: the limits of its configs (the file of the same name in ``kernels/limits``) and
``device/math.py``. A definition in the generated text overrides one of the same name in the kernel file, such as
``epilogue``. Functions that a kernel file lists in ``OVERRIDES`` replace those of the files that it imports from.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path

from cutegen_lab.core.syntax import merged_imports, parse

_PACKAGE = "cutegen_lab.templates.kernels"
_FOLDER = Path(__file__).parents[1] / "kernels"
OVERRIDES = "OVERRIDES"
_EVERYWHERE = {
    "math": "import math",
    "cuda": "import cuda.bindings.driver as cuda",
    "cutlass": "import cutlass",
    "cute": "import cutlass.cute as cute",
    "Float32": "from cutlass import Float32",
}


def bundle(kernel: str, docstring: str, host: Sequence[str], generated: Sequence[str]) -> str:
    """Text of a module: ``docstring`` (source lines with quotes), imports, ``host`` (TUNABLE and functions called
    before compilation), the definitions that they reach in kernel file ``kernel`` (dotted path below
    ``templates/kernels``), ``generated``.

    Raises KeyError if a name is used that neither the file nor Python defines.
    """
    own = [text for text in ("\n".join(host).strip("\n"), "\n".join(generated).strip("\n")) if text]
    texts = _reached(kernel, own)
    imports, body = _imports(kernel, [*own, *texts]), "\n\n\n".join([*own[:1], *texts, *own[1:]])
    return "\n\n".join([docstring.strip("\n"), *imports, body]) + "\n"


@dataclass(frozen=True)
class KernelFile:
    """A kernel file. ``name``: its dotted path below ``templates/kernels``."""

    name: str

    @cached_property
    def _text(self) -> str:
        return (_FOLDER / (self.name.replace(".", "/") + ".py")).read_text().replace("  # fmt: skip", "")

    @cached_property
    def _tree(self) -> ast.Module:
        return parse(self._text)

    @cached_property
    def definitions(self) -> dict[str, str]:
        """Texts of its definitions, from :func:`definitions`."""
        return definitions(self._text)

    @cached_property
    def overrides(self) -> frozenset[str]:
        """Functions of imported files that this file replaces, also where those files call them."""
        lists = (
            node.value for node in self._tree.body if isinstance(node, ast.Assign) and _defined(node) == [OVERRIDES]
        )
        return frozenset(name for each in lists for name in ast.literal_eval(each))

    @cached_property
    def borrowed(self) -> dict[str, KernelFile]:
        """Names imported from other kernel files."""
        found = dict[str, KernelFile]()
        if (_FOLDER / "limits" / f"{self.name}.py").exists():
            limits = kernel_file(f"limits.{self.name}")
            found |= dict.fromkeys(limits.definitions, limits)
        for node in self._tree.body:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(_PACKAGE + "."):
                source = kernel_file(node.module.removeprefix(_PACKAGE + "."))
                found |= {alias.name: source for alias in node.names}
        return found

    @cached_property
    def imports(self) -> dict[str, str]:
        """Import lines from other packages, by the name that each binds."""
        found = dict[str, str]()
        for node in self._tree.body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    renamed = f" as {alias.asname}" if alias.asname else ""
                    found[alias.asname or alias.name] = f"import {alias.name}{renamed}"
            elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(_PACKAGE):
                found |= {alias.name: f"from {node.module} import {alias.name}" for alias in node.names}
        return found

    def files(self) -> Iterator[KernelFile]:
        """This file, last, and all kernel files that it needs, each after those that it imports from."""
        seen = dict[KernelFile, None]()
        for other in self.borrowed.values():
            seen |= dict.fromkeys(other.files())
        yield from [*seen, self]


@lru_cache(maxsize=64)
def kernel_file(name: str) -> KernelFile:
    return KernelFile(name)


@cache
def names_of_kernels() -> frozenset[str]:
    """Names that kernel files define or import at top level."""
    paths = [path.relative_to(_FOLDER).with_suffix("") for path in _FOLDER.rglob("*.py")]
    files = [kernel_file(".".join(path.parts)) for path in paths]
    return frozenset(_EVERYWHERE).union(*(file.definitions for file in files), *(file.imports for file in files))


def _math() -> KernelFile:
    """``device/math.py``, which belongs to every kernel file because expressions call it."""
    return kernel_file("device.math")


def definitions(text: str) -> dict[str, str]:
    """Text of each top-level function, class and constant by name, in order, with the comments above it."""
    lines, found, end = text.splitlines(), dict[str, str](), 0
    for node in parse(text).body:
        start, end = end, node.end_lineno or 0
        for name in _defined(node):
            found[name] = "\n".join(lines[start:end]).strip("\n")
    return found


@lru_cache(maxsize=1024)
def names_used(text: str) -> frozenset[str]:
    """Global names that ``text`` reads, including those it defines."""
    found = set[str]()

    def look(table: symtable.SymbolTable, top: bool) -> None:
        found.update(s.get_name() for s in table.get_symbols() if s.is_referenced() and (top or s.is_global()))
        for child in table.get_children():
            look(child, False)

    try:
        look(symtable.symtable(text, "<module>", "exec"), True)
    except SyntaxError:  # a tensor is named like another parameter; it will be renamed
        for node in parse(text).body:
            names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
            bound = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
            bound |= {each.id for each in names if isinstance(each.ctx, ast.Store)}
            found |= {each.id for each in names} - bound
    return frozenset(found)


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _reached(kernel: str, own: Sequence[str]) -> list[str]:
    """Texts of the definitions that ``own`` needs, in the order of the files."""
    defined = {name for text in own for name in definitions(text)}
    entry = kernel_file(kernel)
    wanted = [(name, entry) for text in own for name in sorted(names_used(text))]
    found = dict[tuple[KernelFile, str], None]()
    while wanted:
        name, file = wanted.pop()
        file = entry if name in entry.overrides else file.borrowed.get(name, file)
        if name in _math().definitions and name not in file.definitions:
            file = _math()
        if name in defined or (file, name) in found or name in vars(builtins) or name in _imported(file):
            continue
        if name not in file.definitions:
            raise KeyError(f"kernels/{file.name}.py has no {name}")
        found[file, name] = None
        wanted += [(other, file) for other in sorted(names_used(file.definitions[name]))]
    return [
        text
        for file in dict.fromkeys([_math(), *entry.files()])
        for text in dict.fromkeys(text for name, text in file.definitions.items() if (file, name) in found)
    ]


def _imported(file: KernelFile) -> dict[str, str]:
    return _EVERYWHERE | file.imports


def _imports(kernel: str, texts: Sequence[str]) -> list[str]:
    """Import lines for the names that ``texts`` use, as one block."""
    available = dict(_EVERYWHERE)
    for file in (_math(), *kernel_file(kernel).files()):
        available |= _imported(file)
    lines = sorted({available[name] for text in texts for name in names_used(text) if name in available})
    plain, chosen = ([line for line in lines if line.startswith(word)] for word in ("import", "from"))
    python = [line for line in plain if line in ("import math", "import operator")]
    others = [*(line for line in plain if line not in python), *merged_imports(chosen)]
    return ["\n".join([*python, *[""] * bool(python), *others])]

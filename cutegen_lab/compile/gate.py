"""The gate: what a candidate's text may not contain, found without running it.

It keeps honest mistakes and plain attacks out cheaply, and says what is wrong. It is not the wall: the cage is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from cutegen_lab.compile.scopes import free_names
from cutegen_lab.core.syntax import dotted, parse
from cutegen_lab.core.verdict import Diagnostic

MAX_SOURCE_BYTES = 512 << 10
NO_LAUNCH = "G03-launch"
ALLOWED_IMPORTS = (
    "cutlass", "cuda.bindings.driver", "math", "functools", "operator", "typing", "dataclasses", "enum", "itertools",
    "collections.abc", "__future__",
)  # fmt: skip
# Of these modules the names that show or change nothing but their arguments.
HARMLESS_NAMES = {
    "inspect": {"isclass", "isfunction", "ismethod"},
    "types": {"SimpleNamespace", "MappingProxyType", "NoneType", "EllipsisType"},
    "contextlib": {"contextmanager", "nullcontext", "suppress"},
}
FORBIDDEN_NAMES = {
    "eval", "exec", "compile", "open", "__import__", "globals", "locals", "vars", "breakpoint", "input", "delattr",
    "setattr", "memoryview", "exit", "quit", "help",
    "id", "hash",  # another number in every process, in which a text would compile to something else
}  # fmt: skip
_ASKED = {"getattr", "hasattr"}  # may be called with a constant name, and not handed on
# Ordinary attributes through which Python's insides, or the machine's, can be reached.
FORBIDDEN_ATTRIBUTES = {
    "gi_frame", "cr_frame", "tb_frame", "f_back", "f_globals", "f_locals", "f_builtins", "func_globals", "mro",
    "os", "sys", "subprocess", "ctypes", "importlib", "builtins", "socket", "shutil", "pathlib", "Path", "inspect",
    "tempfile", "threading", "atexit", "gc", "eval", "exec", "system", "popen", "fromfile", "memmap", "getattribute",
    # look a name up by its text, or evaluate one
    "attrgetter", "methodcaller", "get_type_hints", "ForwardRef",
}  # fmt: skip
_ALLOWED_DUNDERS = {
    "__name__", "__post_init__", "__init__", "__call__", "__doc__", "__class_getitem__", "__class__",
    "__extract_mlir_values__", "__new_from_mlir_values__", "__get_mlir_types__", "__c_pointers__",  # the DSL's protocol
}  # fmt: skip
MOST_ERRORS = 50


def check(source: str) -> list[Diagnostic]:
    """Why this text may not be compiled; empty where it may. Of many reasons the first."""
    if len(source.encode(errors="replace")) > MAX_SOURCE_BYTES:
        return [_error("G01-size", 0, f"the source is over {MAX_SOURCE_BYTES >> 10} KiB", "Write a smaller kernel.")]
    try:
        tree = parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", 0) or 0
        what = getattr(error, "msg", None) or str(error) or type(error).__name__
        found = [_error("G02-syntax", line, f"not valid Python: {what}", "Correct the syntax.")]
    else:
        found = sorted(_errors(tree), key=lambda d: d.line)[:MOST_ERRORS]
    lines = source.splitlines()
    return [replace(d, excerpt=lines[d.line - 1].strip()[:200]) if 0 < d.line <= len(lines) else d for d in found]


def _errors(tree: ast.Module) -> Iterator[Diagnostic]:
    imported = _imported_names(tree)
    partly = _partly_imported(tree)
    taken: set[int] = set()  # names of modules of which an attribute is taken
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        yield from _check_node(node, partly)
        yield from _patches(node, imported)
        if isinstance(node, ast.Attribute):
            taken.add(id(node.value))
        elif isinstance(node, ast.Name) and node.id in partly and id(node) not in taken:
            yield _error("G05-name", node.lineno, f"the module {node.id!r} may not be handed around",
                         f"Use {_some(partly[node.id])} of it.")  # fmt: skip
    for name in free_names(tree, FORBIDDEN_NAMES):
        yield _error("G05-name", name.lineno, f"the name {name.id!r} is not allowed",
                     "A candidate computes; it does not reach into Python or the machine.")  # fmt: skip
    for name in free_names(tree, _ASKED):
        if id(name) not in called:
            yield _error("G07-getattr", name.lineno, f"{name.id} may not be handed around",
                         "Write the attribute out.")  # fmt: skip
    if not any(isinstance(n, ast.FunctionDef) and n.name == "launch" for n in tree.body):
        yield _error(NO_LAUNCH, 0, "no function launch at the top of the module",
                     "Define @cute.jit def launch(inputs..., outputs..., stream, ...).")  # fmt: skip


def _check_node(node: ast.AST, partly: Mapping[str, str]) -> list[Diagnostic]:
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Import):
        return [_import(alias.name, line) for alias in node.names
                if not _allowed(alias.name) and alias.name not in HARMLESS_NAMES]  # fmt: skip
    if isinstance(node, ast.ImportFrom):
        return _import_from(node)
    if isinstance(node, ast.Name) and _dunder(node.id):
        return [_error("G05-name", line, f"the name {node.id!r} is not allowed",
                       "A candidate computes; it does not reach into Python or the machine.")]  # fmt: skip
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in partly:
        module = partly[node.value.id]
        if node.attr not in HARMLESS_NAMES[module]:
            return [_error("G06-attribute", line, f"{module}.{node.attr} is not allowed",
                           f"Of {module} a candidate may use {_some(module)}.")]  # fmt: skip
    elif bad := [name for name in _attributes_read(node) if _forbidden_attribute(name)]:
        return [_error("G06-attribute", line, f"the attribute .{bad[0]} is not allowed",
                       "Write the kernel without Python's internals.")]  # fmt: skip
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
        name = node.args[1] if len(node.args) > 1 else None
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)) or _forbidden_attribute(name.value):
            return [_error("G07-getattr", line, f"{node.func.id} needs a plain constant name",
                           "Write the attribute out.")]  # fmt: skip
    return []


def _import_from(node: ast.ImportFrom) -> list[Diagnostic]:
    line, module = node.lineno, node.module
    if node.level or not module:
        return [_import("." * node.level + (module or ""), line)]
    if _allowed(module):
        return [_error("G08-imported-name", line, f"{a.name!r} may not be taken from {module}",
                       "Import the names you use, and only the DSL's own.")
                for a in node.names if a.name == "*" or _forbidden_attribute(a.name)]  # fmt: skip
    if module in HARMLESS_NAMES:
        return [_error("G08-imported-name", line, f"{a.name!r} may not be taken from {module}",
                       f"Of {module} a candidate may import {_some(module)}.")
                for a in node.names if a.name not in HARMLESS_NAMES[module]]  # fmt: skip
    return [_import(f"{module}.{a.name}", line) for a in node.names if not _allowed(f"{module}.{a.name}")]


def _partly_imported(tree: ast.Module) -> dict[str, str]:
    """Local name of each module of which only some names may be used: the module."""
    imports = [alias for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names]
    return {a.asname or a.name: a.name for a in imports if a.name in HARMLESS_NAMES}


def _some(module: str) -> str:
    return ", ".join(sorted(HARMLESS_NAMES[module]))


def _attributes_read(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return node.kwd_attrs if isinstance(node, ast.MatchClass) else []  # case T(name=value)


def _imported_names(tree: ast.Module) -> set[str]:
    """… and what they, or parts of them, are assigned to."""
    imports = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    found = {a.asname or a.name.split(".")[0] for node in imports for a in node.names}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and _root(node.value) in found:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _root(node: ast.expr | None) -> str:
    """``a`` of ``a.b.c``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _patches(node: ast.AST, imported: set[str]) -> list[Diagnostic]:
    """Assigning to an attribute of something imported changes the compiler for everyone in the process."""
    if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
        return []
    if _root(node) not in imported:
        return []
    return [_error("G09-patch", node.lineno, f"{dotted(node)} is not the candidate's to change",
                   "Define a function of your own.")]  # fmt: skip


def _forbidden_attribute(name: str) -> bool:
    return _dunder(name) or name.strip("_") in FORBIDDEN_ATTRIBUTES  # modules import what they need as _os


def _allowed(module: str) -> bool:
    return any(module == name or module.startswith(name + ".") for name in ALLOWED_IMPORTS)


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _ALLOWED_DUNDERS


def _import(module: str, line: int) -> Diagnostic:
    return _error("G04-import", line, f"import of {module!r} is not allowed",
                  f"A candidate may import {', '.join(ALLOWED_IMPORTS[:-2])}.")  # fmt: skip


def _error(code: str, line: int, message: str, suggestion: str) -> Diagnostic:
    return Diagnostic("error", code, message, line, suggestion=suggestion)

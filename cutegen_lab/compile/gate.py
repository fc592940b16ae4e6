"""The gate: what a candidate's text may not contain, found without running it.

It keeps honest mistakes and plain attacks out cheaply, and says what is wrong. It is not the wall: the cage is.
"""

from __future__ import annotations

import ast

from cutegen_lab.core.syntax import parse
from cutegen_lab.core.verdict import Diagnostic

MAX_SOURCE_BYTES = 512 << 10
NO_LAUNCH = "G03-launch"
ALLOWED_IMPORTS = (
    "cutlass", "cuda.bindings.driver", "math", "functools", "operator", "typing", "dataclasses", "enum", "itertools",
    "collections.abc", "__future__",
)  # fmt: skip
FORBIDDEN_NAMES = {
    "eval", "exec", "compile", "open", "__import__", "globals", "locals", "vars", "breakpoint", "input", "delattr",
    "setattr", "memoryview", "exit", "quit", "help",
}  # fmt: skip
# Ordinary attributes through which Python's insides, or the machine's, can be reached.
FORBIDDEN_ATTRIBUTES = {
    "gi_frame", "cr_frame", "tb_frame", "f_back", "f_globals", "f_locals", "f_builtins", "func_globals", "mro",
    "os", "sys", "subprocess", "ctypes", "importlib", "builtins", "socket", "shutil", "pathlib", "Path", "inspect",
    "tempfile", "threading", "atexit", "gc",
    # look a name up by its text, or evaluate one
    "attrgetter", "methodcaller", "get_type_hints", "ForwardRef",
}  # fmt: skip
_ALLOWED_DUNDERS = {"__name__", "__post_init__", "__init__", "__call__", "__doc__", "__class_getitem__"}


def check(source: str) -> list[Diagnostic]:
    """Why this text may not be compiled; empty where it may."""
    if len(source.encode(errors="replace")) > MAX_SOURCE_BYTES:
        return [_error("G01-size", 0, f"the source is over {MAX_SOURCE_BYTES >> 10} KiB", "Write a smaller kernel.")]
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 0) or 0
        what = getattr(error, "msg", None) or str(error) or type(error).__name__
        return [_error("G02-syntax", line, f"not valid Python: {what}", "Correct the syntax.", source)]
    imported = _imported_names(tree)
    found = [d for node in ast.walk(tree) for d in (*_check_node(node, source), *_patches(node, imported, source))]
    launches = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "launch"]
    if not launches:
        found.append(_error(NO_LAUNCH, 0, "no function launch at the top of the module",
                            "Define @cute.jit def launch(inputs..., outputs..., stream, ...)."))  # fmt: skip
    return sorted(found, key=lambda d: d.line)


def _check_node(node: ast.AST, source: str) -> list[Diagnostic]:
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Import):
        return [_import(alias.name, line, source) for alias in node.names if not _allowed(alias.name)]
    if isinstance(node, ast.ImportFrom):
        if node.level or not node.module:
            return [_import("." * node.level + (node.module or ""), line, source)]
        if _allowed(node.module):
            return [_error("G08-imported-name", line, f"{a.name!r} may not be taken from {node.module}",
                           "Import the names you use, and only the DSL's own.", source)
                    for a in node.names if a.name == "*" or _forbidden_attribute(a.name)]  # fmt: skip
        return [_import(f"{node.module}.{a.name}", line, source) for a in node.names
                if not _allowed(f"{node.module}.{a.name}")]  # fmt: skip
    if isinstance(node, ast.Name) and (node.id in FORBIDDEN_NAMES or _dunder(node.id)):
        return [_error("G05-name", line, f"the name {node.id!r} is not allowed",
                       "A candidate computes; it does not reach into Python or the machine.", source)]  # fmt: skip
    if bad := [name for name in _attributes_read(node) if _forbidden_attribute(name)]:
        return [_error("G06-attribute", line, f"the attribute .{bad[0]} is not allowed",
                       "Write the kernel without Python's internals.", source)]  # fmt: skip
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
        name = node.args[1] if len(node.args) > 1 else None
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)) or _forbidden_attribute(name.value):
            return [_error("G07-getattr", line, f"{node.func.id} needs a plain constant name",
                           "Write the attribute out.", source)]  # fmt: skip
    return []


def _attributes_read(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return node.kwd_attrs if isinstance(node, ast.MatchClass) else []  # case T(name=value)


def _imported_names(tree: ast.Module) -> set[str]:
    imports = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    return {a.asname or a.name.split(".")[0] for node in imports for a in node.names}


def _patches(node: ast.AST, imported: set[str], source: str) -> list[Diagnostic]:
    """Assigning to an attribute of something imported changes the compiler for everyone in the process."""
    if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
        return []
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id not in imported:
        return []
    return [_error("G09-patch", node.lineno, f"{ast.unparse(node)} is not the candidate's to change",
                   "Define a function of your own.", source)]  # fmt: skip


def _forbidden_attribute(name: str) -> bool:
    return _dunder(name) or name in FORBIDDEN_ATTRIBUTES


def _allowed(module: str) -> bool:
    return any(module == name or module.startswith(name + ".") for name in ALLOWED_IMPORTS)


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _ALLOWED_DUNDERS


def _import(module: str, line: int, source: str) -> Diagnostic:
    return _error("G04-import", line, f"import of {module!r} is not allowed",
                  f"A candidate may import {', '.join(ALLOWED_IMPORTS[:-2])}.", source)  # fmt: skip


def _error(code: str, line: int, message: str, suggestion: str, source: str = "") -> Diagnostic:
    lines = source.splitlines()
    text = lines[line - 1].strip()[:200] if 0 < line <= len(lines) else ""
    return Diagnostic("error", code, message, line, excerpt=text, suggestion=suggestion)

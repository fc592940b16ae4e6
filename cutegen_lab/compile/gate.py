"""The gate: what a candidate's text may not contain, found without running it.

It keeps honest mistakes and plain attacks out cheaply, and says what is wrong. It is not the wall: the cage is.
"""

from __future__ import annotations

import ast

from cutegen_lab.compile.syntax import parse
from cutegen_lab.core.verdict import Diagnostic

MAX_SOURCE_BYTES = 512 << 10
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
    "os", "sys", "subprocess", "ctypes", "importlib", "builtins", "socket", "shutil", "pathlib",
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
    found = [d for node in ast.walk(tree) for d in _check_node(node, source)]
    launches = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "launch"]
    if not launches:
        found.append(_error("G03-launch", 0, "no function launch at the top of the module",
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
            return []
        return [_import(f"{node.module}.{a.name}", line, source) for a in node.names
                if not _allowed(f"{node.module}.{a.name}")]  # fmt: skip
    if isinstance(node, ast.Name) and (node.id in FORBIDDEN_NAMES or _dunder(node.id)):
        return [_error("G05-name", line, f"the name {node.id!r} is not allowed",
                       "A candidate computes; it does not reach into Python or the machine.", source)]  # fmt: skip
    if isinstance(node, ast.Attribute) and (_dunder(node.attr) or node.attr in FORBIDDEN_ATTRIBUTES):
        return [_error("G06-attribute", line, f"the attribute .{node.attr} is not allowed",
                       "Write the kernel without Python's internals.", source)]  # fmt: skip
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
        name = node.args[1] if len(node.args) > 1 else None
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)) or _dunder(name.value):
            return [_error("G07-getattr", line, f"{node.func.id} needs a plain constant name",
                           "Write the attribute out.", source)]  # fmt: skip
    return []


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

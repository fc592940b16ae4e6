"""Names first bound inside a dynamic if or for and used after it: the DSL reports them as NameError, elsewhere."""

from __future__ import annotations

import ast
import builtins

from cutegen_lab.core.verdict import Diagnostic


def born_in_region(tree: ast.Module, function: ast.FunctionDef) -> list[Diagnostic]:
    arguments = function.args
    known = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} | set(dir(builtins))
    known |= _stores(tree) - _stores(function)
    born: set[str] = set()
    found: list[Diagnostic] = []
    _block(function.body, known, born, found)
    return found


def _block(body: list[ast.stmt], known: set[str], born: set[str], found: list[Diagnostic]) -> set[str]:
    """Names bound after ``body``; ``born`` collects those that only a dynamic region bound."""
    known = set(known)
    for statement in body:
        if isinstance(statement, (ast.If, ast.For, ast.While)):
            head = statement.iter if isinstance(statement, ast.For) else statement.test
            _uses(head, known, born, found)
            inner = known | (_stores(statement.target) if isinstance(statement, ast.For) else set())
            inside = _block(statement.body, inner, set(born), found)
            otherwise = _block(statement.orelse, known, set(born), found)
            if _unrolled(statement):
                known |= inside | otherwise
                born -= known
            else:
                born |= (inside | otherwise) - known
        else:
            bound = _stores(statement)
            _uses(statement, known | bound, born - bound - _parameters(statement), found)
            known |= bound
            born -= known
    return known


def _unrolled(node: ast.If | ast.For | ast.While) -> bool:
    from cutegen_lab.compile.lint import is_constant_control

    return is_constant_control(node)


def _parameters(statement: ast.stmt) -> set[str]:
    """A nested function's own, which shadow."""
    return {a.arg for a in ast.walk(statement) if isinstance(a, ast.arg)}


def _uses(node: ast.AST, known: set[str], born: set[str], found: list[Diagnostic]) -> None:
    for name in ast.walk(node):
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load) and name.id in born - known:
            found.append(
                Diagnostic(
                    "warning", "L13-born-in-region", f"{name.id!r} is first bound inside an if or for, and used after",
                    name.lineno, suggestion="Bind it before, with the type it will have (cutlass.Float32(0.0)).",
                )
            )  # fmt: skip


def _stores(node: ast.AST) -> set[str]:
    names: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            if isinstance(inner.ctx, ast.Store):
                names.add(inner.id)
        elif isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
            names.add(inner.name)
        elif isinstance(inner, (ast.Import, ast.ImportFrom)):
            names |= {a.asname or a.name.split(".")[0] for a in inner.names}
    return names

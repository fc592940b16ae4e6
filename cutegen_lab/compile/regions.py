"""Names first bound inside a dynamic if or for and used after it: the DSL reports them as NameError, elsewhere."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from cutegen_lab.core.syntax import Nodes
from cutegen_lab.core.verdict import Diagnostic


def born_in_region(nodes: Nodes, tree: ast.Module, functions: Iterable[ast.FunctionDef]) -> list[Diagnostic]:
    """Of each of ``functions``, all in ``tree``, whose nodes are ``nodes``."""
    regions = _Regions(nodes)
    everywhere = regions.stores(tree)
    for function in functions:
        arguments = function.args
        known = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} | set(dir(builtins))
        regions.block(function.body, known | (everywhere - regions.stores(function)), set())
    return regions.found


class _Regions:
    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.found: list[Diagnostic] = []

    def block(self, body: list[ast.stmt], known: set[str], born: set[str]) -> set[str]:
        """Names bound after ``body``; ``born`` collects those that only a dynamic region bound."""
        known = set(known)
        for statement in body:
            if isinstance(statement, (ast.If, ast.For, ast.While)):
                head = statement.iter if isinstance(statement, ast.For) else statement.test
                self._uses(head, known, born)
                inner = known | (self.stores(statement.target) if isinstance(statement, ast.For) else set())
                inside = self.block(statement.body, inner, set(born))
                otherwise = self.block(statement.orelse, known, set(born))
                if _unrolled(statement):
                    known |= inside | otherwise
                    born -= known
                else:
                    born |= (inside | otherwise) - known
            else:
                bound = self.stores(statement)
                self._uses(statement, known | bound, born - bound - self._parameters(statement))
                known |= bound
                born -= known
        return known

    def _parameters(self, statement: ast.stmt) -> set[str]:
        """A nested function's own, which shadow."""
        return {a.arg for a in self._nodes.within(statement) if isinstance(a, ast.arg)}

    def _uses(self, node: ast.AST, known: set[str], born: set[str]) -> None:
        for name in self._nodes.within(node):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load) and name.id in born - known:
                self.found.append(
                    Diagnostic(
                        "warning",
                        "L13-born-in-region",
                        f"{name.id!r} is first bound inside an if or for, and used after",
                        name.lineno,
                        suggestion="Bind it before, with the type it will have (cutlass.Float32(0.0)).",
                    )
                )

    def stores(self, node: ast.AST) -> set[str]:
        names: set[str] = set()
        for inner in self._nodes.within(node):
            if isinstance(inner, ast.Name):
                if isinstance(inner.ctx, ast.Store):
                    names.add(inner.id)
            elif isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
                names.add(inner.name)
            elif isinstance(inner, (ast.Import, ast.ImportFrom)):
                names |= {a.asname or a.name.split(".")[0] for a in inner.names}
        return names


def _unrolled(node: ast.If | ast.For | ast.While) -> bool:
    from cutegen_lab.compile.lint import is_constant_control

    return is_constant_control(node)

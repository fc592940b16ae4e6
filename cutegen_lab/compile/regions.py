"""Names first bound inside a dynamic if or for and used after it: the DSL reports a NameError at another line."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from cutegen_lab.core.syntax import Nodes
from cutegen_lab.core.verdict import Diagnostic

_BUILTINS = frozenset(dir(builtins))


def born_in_region(nodes: Nodes, functions: Iterable[ast.FunctionDef]) -> list[Diagnostic]:
    """Names first bound in a dynamic region and used after it, in each of ``functions``, whose nodes are in
    ``nodes``."""
    found: list[Diagnostic] = []
    for function in functions:
        arguments = function.args
        regions = _Regions(nodes)
        regions.bind(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
        regions.block(function.body)
        found += regions.found
    return found


class _Regions:
    """Names bound at the current statement (``_known``), and names bound only in a dynamic region (``_born``). After a
    branch, only its own changes are undone, from ``_log``: the cost is proportional to the branch's length."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._known: set[str] = set()
        self._born: set[str] = set()
        self._log: list[tuple[set[str], str, bool]] = []  # (set, name, whether it was added)
        self.found: list[Diagnostic] = []

    def bind(self, names: Iterable[str]) -> None:
        for name in names:
            self._change(self._known, name, True)
            self._change(self._born, name, False)

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, (ast.If, ast.For, ast.While)):
                head = statement.iter if isinstance(statement, ast.For) else statement.test
                self._uses(head, set())
                target = self.stores(statement.target) if isinstance(statement, ast.For) else set()
                bound = self._branch(statement.body, target) | self._branch(statement.orelse, set())
                if is_constant_control(statement):
                    self.bind(bound)
                else:
                    for name in bound - self._known - _BUILTINS:
                        self._change(self._born, name, True)
            else:
                bound = self.stores(statement)
                self._uses(statement, bound | self._parameters(statement))
                self.bind(bound)

    def _branch(self, body: list[ast.stmt], target: set[str]) -> set[str]:
        """Names that ``body`` binds; its other effects are undone."""
        start = len(self._log)
        self.bind(target)
        self.block(body)
        bound = {name for names, name, added in self._log[start:] if names is self._known and added}
        while len(self._log) > start:
            names, name, added = self._log.pop()
            names.discard(name) if added else names.add(name)
        return bound

    def _change(self, names: set[str], name: str, add: bool) -> None:
        if (name in names) != add:
            self._log.append((names, name, add))
            names.add(name) if add else names.discard(name)

    def _parameters(self, statement: ast.stmt) -> set[str]:
        """Parameters of a nested function, which shadow outer names."""
        return {a.arg for a in self._nodes.within(statement) if isinstance(a, ast.arg)}

    def _uses(self, node: ast.AST, own: set[str]) -> None:
        """Reports uses in ``node`` of names bound only in a dynamic region. ``own``: names that ``node`` binds
        itself."""
        if not self._born:
            return
        for name in self._nodes.within(node):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load) and name.id in self._born - own:
                self.found.append(
                    Diagnostic(
                        "warning",
                        "L13-born-in-region",
                        f"{name.id!r} is first bound inside an if or for, and used after it",
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


def is_constant_control(node: ast.For | ast.If | ast.While) -> bool:
    """Whether the loop or branch is unrolled or decided while tracing."""
    head = node.iter if isinstance(node, ast.For) else node.test
    if isinstance(node, ast.For) and isinstance(head, (ast.List, ast.Tuple)):
        return True
    return mentions(head, "range_constexpr", "const_expr", "enumerate")


def mentions(node: ast.AST, *words: str) -> bool:
    """Whether a name in ``node`` contains one of ``words``."""
    names = (
        n.id if isinstance(n, ast.Name) else n.attr if isinstance(n, ast.Attribute) else "" for n in ast.walk(node)
    )
    return any(word in name for name in names for word in words)

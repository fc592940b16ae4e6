"""A kernel's text as a syntax tree with positions: functions, module-level constants, their readers and callers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.syntax import parse

HOST = {"constraints": 0, "workspace": 1}  # by other function of the contract: index of the argument that is the config


@dataclass(frozen=True, order=True)
class Span:
    """Characters of the text."""

    start: int
    """First character, from 0."""
    end: int
    """One past the last."""

    def __contains__(self, other: object) -> bool:
        return isinstance(other, Span) and self.start <= other.start and other.end <= self.end


class KernelText:
    """A kernel's text, parsed. Raises InputError if it is not Python or has no launch()."""

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            self.tree = parse(source)
        except (SyntaxError, ValueError) as error:
            raise InputError(f"the kernel is not Python: {error}", "Correct it.") from None
        self.functions: Mapping[str, ast.FunctionDef] = {
            n.name: n for n in self.tree.body if isinstance(n, ast.FunctionDef)
        }
        if "launch" not in self.functions:
            raise InputError("the kernel has no function launch() at its top level", "Define it; see the contract.")
        lines = source.splitlines(keepends=True)
        self._lines = lines
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.AST) -> Span:
        """Position of an expression, a statement or an argument."""
        assert isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword)
        return Span(self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset))

    def lines_of(self, node: ast.stmt) -> Span | None:
        """The lines of a statement; None if another statement is on one of them."""
        span = self.span(node)
        start, end = self._starts[node.lineno - 1], self._starts[node.end_lineno or node.lineno]
        rest = self.source[span.end : end].strip()
        alone = not self.source[start : span.start].strip() and (not rest or rest.startswith("#"))
        return Span(start, end) if alone else None

    def line(self, span: Span) -> int:
        return self.source.count("\n", 0, span.start) + 1

    def body(self, function: ast.FunctionDef) -> Span:
        return Span(self.span(function.body[0]).start, self.span(function.body[-1]).end)

    def owner(self, span: Span) -> str | None:
        """The top-level function whose body contains ``span``."""
        return next((name for name, f in self.functions.items() if span in self.body(f)), None)

    @cached_property
    def constants(self) -> Mapping[str, ast.expr]:
        """Names that the module assigns once, with their values; tuples are unpacked."""
        found: dict[str, list[ast.expr]] = {}
        for statement in self.tree.body:
            for name, value in assigned(statement):
                found.setdefault(name, []).append(value)
        return {name: values[0] for name, values in found.items() if len(values) == 1}

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name in the text."""
        loose = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name)}
        return frozenset(loose | {n.arg for n in ast.walk(self.tree) if isinstance(n, ast.arg)} | set(self.functions))

    @cached_property
    def formatted(self) -> frozenset[int]:
        """Nodes (by id) inside f-strings, whose positions Python lacks before 3.12."""
        strings = (n for n in ast.walk(self.tree) if isinstance(n, ast.JoinedStr))
        return frozenset(id(inner) for string in strings for inner in ast.walk(string))

    def reads(self, name: str) -> list[ast.Name]:
        """Reads of the module's ``name``, except in functions with a local name like it."""
        own = [f for f in self.functions.values() if name in bound(f)]
        found = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name) and n.id == name]
        loads = (n for n in found if isinstance(n.ctx, ast.Load))
        return [n for n in loads if not any(self.span(n) in self.span(f) for f in own)]

    def calls(self, function: str) -> list[ast.Call]:
        return [n for n in ast.walk(self.tree)
                if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == function]  # fmt: skip

    def _at(self, line: int | None, column: int | None) -> int:
        """Character position: Python counts columns in bytes of UTF-8."""
        assert line is not None and column is not None
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return self._starts[line - 1] + len(text.encode()[:column].decode())


def assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Names and values of an assignment, also of ``a, b = 1, 2``."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        if isinstance(statement.target, ast.Name):
            yield statement.target.id, statement.value
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, of in zip(target.elts, value.elts, strict=True):
                if isinstance(one, ast.Name):
                    yield one.id, of


def bound(function: ast.FunctionDef) -> set[str]:
    """A function's local names: arguments and names that it assigns."""
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {a.arg for n in ast.walk(function) if isinstance(n, ast.arguments) for a in every_argument(n)}


def every_argument(arguments: ast.arguments) -> list[ast.arg]:
    rest = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def whole_number(node: ast.AST | None) -> int | None:
    """A literal integer's value; None for others, True and False included."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None

"""Thread-safe ``ast.parse`` with a limit on nesting."""

from __future__ import annotations

import ast
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.core.plain_text import misfit

_ONE_AT_A_TIME = threading.Lock()
_TRIES = 5
# A sum of 400 terms compiles; the deepest of 3,500 modules of PyTorch and the DSL has a depth of 94.
MAX_DEPTH = 500


def parse(source: str, filename: str = "<unknown>") -> ast.Module:
    """The module's tree. Raises SyntaxError for text that is not Python, for characters no encoding has, and for
    nesting deeper than ``MAX_DEPTH``.

    CPython 3.11 keeps one nesting counter for all threads and raises SystemError when two parse at once
    (python/cpython#106905). Calls through here are serialised; a clash with another thread is retried.
    """
    if why := misfit(source):
        raise SyntaxError(f"it {why}", (filename, 1, 1, None))
    if (null := source.find("\0")) >= 0:
        raise SyntaxError("it has a null character", (filename, source.count("\n", 0, null) + 1, 1, None))
    try:
        tree = _parse(source, filename)
        assert isinstance(tree, ast.Module)
    except (RecursionError, MemoryError):  # limits of the parser itself
        raise _too_deep(filename, 1) from None
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise _too_deep(filename, max(getattr(node, "lineno", 1) for node in level))
    return tree


def parse_problem(source: str, filename: str = "<unknown>") -> ast.Module:
    """The syntax tree of a problem's text. Does not import PyTorch, which takes seconds.

    Raises ProblemError for text that is empty, has only comments, or is not Python.
    """
    if not source.strip():
        raise ProblemError("the cell is empty", "Define `def reference(x): ...` in it.")
    try:
        tree = parse(source, filename)
    except SyntaxError as error:
        text = (error.text or "").strip()
        raise ProblemError(
            f"syntax error at line {error.lineno}: {error.msg}: {text!r}", "Fix it and run again."
        ) from None
    if not tree.body:
        raise ProblemError("the cell holds only comments", "Define `def reference(x): ...` in it.")
    return tree


def expression(source: str) -> ast.expr:
    """The tree of a single expression. Raises SyntaxError for other text."""
    tree = _parse(source, "<unknown>", "eval")
    assert isinstance(tree, ast.Expression)
    return tree.body


def _too_deep(filename: str, line: int) -> SyntaxError:
    return SyntaxError(f"nested over {MAX_DEPTH} levels deep", (filename, line, 1, ""))


def _parse(source: str, filename: str, mode: str = "exec") -> ast.AST:
    with _ONE_AT_A_TIME:
        for _ in range(_TRIES - 1):
            try:
                return ast.parse(source, filename, mode)  # noqa: TID251
            except SystemError:
                continue
        return ast.parse(source, filename, mode)  # noqa: TID251


@lru_cache(maxsize=64)  # a run's view is built again after each event
def launch_defaults(source: str) -> Mapping[str, str] | None:
    """Parameters of ``launch`` with defaults as text ("" for none); None if the source does not parse or a default is
    nested too deeply for ``ast.unparse``."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError):
        return None
    try:
        return {name: ast.unparse(default) if default else "" for name, default in launch_parameters(tree)}
    except RecursionError:
        return None


def launch_parameters(tree: ast.Module) -> list[tuple[str, ast.expr | None]]:
    """Names of the parameters of ``launch`` in order, with their defaults; nothing without a ``launch``."""
    launch = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "launch"), None)
    if launch is None:
        return []
    positional = launch.args.posonlyargs + launch.args.args
    padding: list[ast.expr | None] = [None] * (len(positional) - len(launch.args.defaults))
    defaults = [*padding, *launch.args.defaults, *launch.args.kw_defaults]
    return [(a.arg, d) for a, d in zip(positional + launch.args.kwonlyargs, defaults, strict=True)]


def with_launch_defaults(source: str, values: Mapping[str, object]) -> str:
    """``source`` in which parameters of ``launch`` have these defaults; other text stays as it is. Parameters without a
    default, and names that ``launch`` does not have, are ignored. Raises SyntaxError."""
    text = source.encode()
    starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
    for name, default in reversed(launch_parameters(parse(source))):
        if default is None or name not in values or default.end_lineno is None:
            continue
        first = starts[default.lineno - 1] + default.col_offset
        last = starts[default.end_lineno - 1] + (default.end_col_offset or 0)
        text = text[:first] + repr(values[name]).encode() + text[last:]
    return text.decode()


def dotted(node: ast.AST) -> str:
    """The dotted name of ``node``: ``a.b.c``. An expression that is not a name counts as empty: ``f().c`` gives
    ``.c``."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "", *reversed(parts)])


class Nodes:
    """A tree's nodes in source order, so that :meth:`within` is a slice."""

    def __init__(self, tree: ast.AST) -> None:
        self._all: list[ast.AST] = []
        self._ends: dict[int, int] = {}
        self._starts: dict[int, int] = {}
        left: list[tuple[ast.AST, bool]] = [(tree, False)]
        while left:
            node, done = left.pop()
            if done:
                self._ends[id(node)] = len(self._all)
                continue
            if id(node) not in self._starts:  # context nodes (Load, Store) are shared between nodes
                self._starts[id(node)] = len(self._all)
                left.append((node, True))
            self._all.append(node)
            left += [(child, False) for child in reversed(list(ast.iter_child_nodes(node)))]

    def within(self, node: ast.AST) -> Sequence[ast.AST]:
        """``node`` (of the tree) and all nodes below it."""
        return self._all[self._starts[id(node)] : self.end(node)]

    def end(self, node: ast.AST) -> int:
        """One past the index of the last node below ``node``."""
        return self._ends[id(node)]

    def placed(self, node: ast.AST) -> Iterator[tuple[int, ast.AST]]:
        """As :meth:`within`, each node with its index."""
        return enumerate(self.within(node), self._starts[id(node)])


def merged_imports(lines: Iterable[str]) -> list[str]:
    """Merges lines ``from m import a, b``: one line for each module, with all names that ``lines`` import from it."""
    found = dict[str, set[str]]()
    for line in lines:
        module, _, names = line.partition(" import ")
        found.setdefault(module, set()).update(names.split(", "))
    return [f"{module} import {', '.join(sorted(names))}" for module, names in found.items()]


def code_of(node: ast.AST, without: Collection[str] = ()) -> str:
    """The tree below ``node`` as text, without positions; the fields of ``node`` in ``without`` are left out.
    (``ast.dump`` is recursive and fails on a sum of hundreds of terms.)"""
    out: list[str] = []
    left: list[object] = [value for name, value in reversed([*ast.iter_fields(node)]) if name not in without]
    out.append(type(node).__name__)
    while left:
        match left.pop():
            case ast.AST() as each:
                out.append(type(each).__name__)
                left += [value for _, value in reversed([*ast.iter_fields(each)])]
            case list() as several:
                out.append(f"[{len(several)}]")
                left += reversed(several)
            case bool() | float() | complex() | str() | bytes() | None as value:
                out.append(repr(value))
            case int() as value:
                out.append(hex(value))  # Python limits decimal conversion to 4,300 digits
            case value:
                out.append(repr(value))
    return " ".join(out)

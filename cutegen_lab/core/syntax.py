"""``ast.parse`` that several threads may call at once."""

from __future__ import annotations

import ast
import threading
from collections.abc import Sequence

from cutegen_lab.core.plain_text import misfit

_ONE_AT_A_TIME = threading.Lock()
_TRIES = 5


def parse(source: str, filename: str = "<unknown>") -> ast.Module:
    """The module's tree. Raises SyntaxError for whatever is no Python, characters that no encoding has among it.

    CPython 3.11 counts the depth of trees under construction in one place for all threads and raises SystemError when
    two parse at once (python/cpython#106905). Our own take turns; against anyone else's thread it is tried again.
    """
    if why := misfit(source):
        raise SyntaxError(f"it {why}", (filename, 1, 1, None))
    if (null := source.find("\0")) >= 0:
        raise SyntaxError("it has a null character", (filename, source.count("\n", 0, null) + 1, 1, None))
    try:
        return _parse(source, filename)
    except (RecursionError, MemoryError):
        raise SyntaxError("it is too deeply nested", (filename, 1, 1, None)) from None


def _parse(source: str, filename: str) -> ast.Module:
    with _ONE_AT_A_TIME:
        for _ in range(_TRIES - 1):
            try:
                return ast.parse(source, filename)
            except SystemError:
                continue
        return ast.parse(source, filename)


class Nodes:
    """A tree's nodes in the order of its text: :meth:`within` costs nothing a node, however often it is asked."""

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
            if id(node) not in self._starts:  # contexts are shared between nodes
                self._starts[id(node)] = len(self._all)
                left.append((node, True))
            self._all.append(node)
            left += [(child, False) for child in reversed(list(ast.iter_child_nodes(node)))]

    def within(self, node: ast.AST) -> Sequence[ast.AST]:
        """``node``, of the tree, and all below it."""
        return self._all[self._starts[id(node)] : self._ends[id(node)]]

"""Names by which a method may be called: attributes, names, keywords, and strings, which may be passed to
``getattr``."""

from __future__ import annotations

import ast
from collections.abc import Container

_SHORTEST_PART = 3  # minimum length of the constant part of an f-string that is compared with names


class Mentions:
    """``name in mentions``: whether the added code may look up an attribute of that name."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._parts: set[tuple[str, bool]] = set()  # parts of names built at run time: (prefix, True), (suffix, False)

    def add(self, node: ast.AST, without: Container[ast.AST]) -> None:
        """Adds ``node`` without the definitions in ``without``."""
        left = [node]
        while left:
            node = left.pop()
            if isinstance(node, ast.Attribute):
                self._names.add(node.attr)
            elif isinstance(node, ast.Name):
                self._names.add(node.id)
            elif isinstance(node, ast.keyword) and node.arg:
                self._names.add(node.arg)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                self._names.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                for part, begins in ((node.values[:1], True), (node.values[-1:], False)):
                    text = part[0].value if part and isinstance(part[0], ast.Constant) else ""
                    if isinstance(text, str) and text.isidentifier() and len(text) >= _SHORTEST_PART:
                        self._parts.add((text, begins))
            left += [child for child in ast.iter_child_nodes(node) if child not in without]

    def __contains__(self, name: str) -> bool:
        return name in self._names or any(
            name.startswith(part) if begins else name.endswith(part) for part, begins in self._parts
        )

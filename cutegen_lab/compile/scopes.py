"""Names that a function binds itself, which therefore are not Python's builtins of the same name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def free_names(tree: ast.Module, names: set[str]) -> Iterator[ast.Name]:
    """Uses of ``names`` that no enclosing function, lambda or comprehension binds: such a use finds the builtin, unless
    the module or class has defined the name by then."""
    left: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]
    while left:
        node, bound = left.pop()
        if isinstance(node, ast.Name):
            if node.id in names and node.id not in bound:
                yield node
            continue
        outside, inside = parts(node)
        left += [(child, bound) for child in outside]
        if inside:
            own = bound_in(node, inside) & names
            left += [(child, bound | own) for child in inside]


def parts(node: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """Children of ``node`` evaluated in its own scope, and those in a new scope."""
    if isinstance(node, _FUNCTIONS):
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        within = {id(child) for child in body}
        return [child for child in ast.iter_child_nodes(node) if id(child) not in within], list(body)
    if isinstance(node, _COMPREHENSIONS):
        first = node.generators[0].iter
        rest = [child for part in node.generators for child in ast.iter_child_nodes(part) if child is not first]
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return [first], [*rest, *results]
    return list(ast.iter_child_nodes(node)), []


def bound_in(scope: ast.AST, inside: list[ast.AST]) -> set[str]:
    """Names that the scope binds in ``inside``, without global and nonlocal ones."""
    found, elsewhere = set(), set()
    if isinstance(scope, _FUNCTIONS):
        every = scope.args
        given = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
        found |= {argument.arg for argument in given if argument}
    left = list(inside)
    while left:
        node = left.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere |= set(node.names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        if isinstance(node, ast.NamedExpr) and isinstance(scope, _COMPREHENSIONS):
            left.append(node.value)  # its target belongs to the enclosing scope
        elif not isinstance(node, ast.ClassDef):
            left += parts(node)[0]
    return found - elsewhere

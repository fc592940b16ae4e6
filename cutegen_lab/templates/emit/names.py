"""Queries on a module's syntax tree: names called, read and assigned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any

import libcst as cst

_PUNCTUATION = frozenset({
    "leading_lines", "lines_after_decorators", "trailing_whitespace", "header", "footer", "indent", "semicolon",
    "comma", "colon", "equal", "dot", "lpar", "rpar", "lbracket", "rbracket", "lbrace", "rbrace", "asynchronous",
})  # fmt: skip
_SPACES = frozenset({
    cst.SimpleWhitespace, cst.ParenthesizedWhitespace, cst.EmptyLine, cst.TrailingWhitespace, cst.Newline, cst.Comment,
    cst.Comma, cst.LeftParen, cst.RightParen, cst.AssignEqual, cst.Dot, cst.LeftSquareBracket, cst.RightSquareBracket,
    cst.Colon, cst.Semicolon, cst.Integer, cst.SimpleString, cst.Float, cst.Add, cst.Subtract, cst.Multiply,
    cst.FloorDivide, cst.Modulo, cst.LessThan, cst.GreaterThan, cst.Equal, cst.NotEqual,
})  # fmt: skip
# Compared by type: an isinstance check of LibCST's abstract classes is several times slower.
_COMPOUND = frozenset({cst.Module, cst.FunctionDef, cst.ClassDef, cst.IndentedBlock, cst.For, cst.If, cst.Else})
_NAMED = frozenset({cst.Param, cst.FunctionDef, cst.ClassDef})
_TARGETED = frozenset({cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor, cst.NamedExpr})
RANGES = ("cutlass.range", "cutlass.range_constexpr", "range")


def only_part(statement: cst.CSTNode | None) -> cst.BaseSmallStatement | None:
    """The statement of a line; None for a compound statement and for a line of several."""
    return statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None


def dotted(node: cst.CSTNode) -> str:
    """``a.b.c`` for names and attributes; empty for other nodes."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr.value}"
    return ""


@cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """Fields of a node type whose children are code, not white space or punctuation."""
    return tuple(f.name for f in fields(kind) if not f.name.startswith("whitespace") and f.name not in _PUNCTUATION)


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Child nodes without white space, comments and punctuation."""
    found: list[cst.CSTNode] = []
    for name in _fields(type(node)):
        value = getattr(node, name)
        kind: Any = type(value)
        if kind is list or kind is tuple:
            found += value
        elif _is_node(kind):  # an isinstance check of an abstract class is several times slower
            found.append(value)
    return found


@cache
def _is_node(kind: Any) -> bool:
    return issubclass(kind, cst.CSTNode)


def within(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """``node`` and all code below it."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += reversed(children(current))


class _Order(cst.CSTVisitor):
    """Collects the fields of a node in the order in which LibCST visits them."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        return False

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        self.fields.append(attribute)


_visited: dict[type[cst.CSTNode], tuple[str, ...]] = {}


def _visited_fields(node: cst.CSTNode) -> tuple[str, ...]:
    """Like :func:`_fields`, in text order."""
    kind = type(node)
    if (known := _visited.get(kind)) is None:
        order = _Order()
        node._visit_and_replace_children(order)
        known = _visited[kind] = tuple(name for name in order.fields if name in _fields(kind))
    return known


@cache
def _handler(transformer: type[cst.CSTTransformer], event: str, kind: type[cst.CSTNode]) -> Callable[..., Any] | None:
    """The transformer's method for nodes of a type; None if it is LibCST's, which does nothing."""
    method: Callable[..., Any] | None = getattr(transformer, f"{event}_{kind.__name__}", None)
    return None if getattr(method, "_is_no_op", False) else method


class Quick(cst.CSTTransformer):
    """A transformer that skips white space and punctuation, and keeps unchanged nodes (LibCST's own transformer
    rebuilds every node)."""

    def __init__(self) -> None:
        super().__init__()
        self._left: list[cst.CSTNode] = []  # nodes between on_visit and on_leave, with changed children

    def on_visit(self, node: cst.CSTNode) -> bool:
        kind = type(node)
        visit = _handler(type(self), "visit", kind)
        enters = kind not in _SPACES and (visit is None or visit(self, node) is not False)
        self._left.append(self._with_children(node) if enters else node)
        return False

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:
        updated_node, leave = self._left.pop(), _handler(type(self), "leave", type(original_node))
        return updated_node if leave is None else leave(self, original_node, updated_node)

    def _visited(self, node: cst.CSTNode) -> Any:
        self.on_visit(node)
        return self.on_leave(node, node)

    def _with_children(self, node: cst.CSTNode) -> cst.CSTNode:
        changed = dict[str, Any]()
        for name in _visited_fields(node):
            value: Any = getattr(node, name)
            kind: Any = type(value)
            found: Any
            if kind is list or kind is tuple:
                found = self._sequence(value)
                if found is not None:
                    changed[name] = found
            elif _is_node(kind) and (found := self._visited(value)) is not value:
                changed[name] = None if found is cst.RemovalSentinel.REMOVE else found  # an ``else`` may be removed
        return node.with_changes(**changed) if changed else node

    def _sequence(self, nodes: Sequence[cst.CSTNode]) -> tuple[cst.CSTNode, ...] | None:
        """Visited ``nodes`` without removed ones; None if nothing changes."""
        found, same = list[cst.CSTNode](), True
        for node in nodes:
            new = self._visited(node)
            if new is node:
                found.append(node)
                continue
            same = False
            if new is not cst.RemovalSentinel.REMOVE:
                several = new if isinstance(new, cst.FlattenSentinel) else (new,)
                found += [each for each in several if node._is_removable() or not each._is_removable()]
        return None if same else tuple(found)


def functions(module: cst.Module) -> dict[str, cst.FunctionDef]:
    """Top-level functions by name."""
    return {node.name.value: node for node in module.body if isinstance(node, cst.FunctionDef)}


def names_of_module(module: cst.Module) -> set[str]:
    """Names that the module's top level binds."""
    found = set[str]()
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef | cst.ClassDef):
            found.add(statement.name.value)
        for each in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(each, cst.Import | cst.ImportFrom) and not isinstance(each.names, cst.ImportStar):
                found |= {bound_by(alias) for alias in each.names}
            elif isinstance(each, cst.Assign):
                found |= set(target_names(each))
    return found


def bound_by(alias: cst.ImportAlias) -> str:
    """Name that an import binds: ``a`` for ``import a.b``."""
    if alias.asname is not None:
        return "".join(names_of(alias.asname.name))
    return alias.evaluated_name.partition(".")[0]


def parameters(function: cst.FunctionDef) -> list[str]:
    """Names of plain parameters."""
    return [parameter.name.value for parameter in function.params.params]


@lru_cache(maxsize=4096)
def calls_in(node: cst.CSTNode) -> tuple[cst.Call, ...]:
    """Calls within ``node``, in text order."""
    return tuple(each for each in within(node) if isinstance(each, cst.Call))


def called(node: cst.CSTNode) -> set[str]:
    """Dotted names of the functions called within ``node``; "" for a callee that is not a name."""
    return {dotted(each.func) for each in calls_in(node)}


def const_expr_argument(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``x`` of ``cutlass.const_expr(x)``; None for other nodes."""
    if isinstance(node, cst.Call) and dotted(node.func) in ("cutlass.const_expr", "const_expr") and len(node.args) == 1:
        return node.args[0].value
    return None


def is_range(node: cst.BaseExpression) -> bool:
    """Whether ``node`` is a call of ``range`` or of one of the DSL's ranges."""
    return isinstance(node, cst.Call) and dotted(node.func) in RANGES


def names_of(target: cst.CSTNode) -> list[str]:
    """Names in a target that is a name or a tuple of names; () otherwise."""
    if isinstance(target, cst.Name):
        return [target.value]
    if isinstance(target, cst.Tuple | cst.List):
        found = [names_of(element.value) for element in target.elements]
        return [name for names in found for name in names] if all(found) else []
    return []


def target_names(node: cst.Assign) -> list[str]:
    """Names bound by an assignment with one target; () if it stores into an object."""
    return names_of(node.targets[0].target) if len(node.targets) == 1 else []


@lru_cache(maxsize=16384)
def loads(node: cst.CSTNode) -> Counter[str]:
    """Number of reads of each name within ``node``, without attributes, keywords, targets and parameters."""
    counts: Counter[str] = Counter()
    if type(node) in _COMPOUND:  # cached: most parts are unchanged
        for part in read_in(node):
            counts.update(loads(part))
        return counts
    stack = [node]
    while stack:
        current = stack.pop()
        if type(current) is cst.Name:
            counts[current.value] += 1
        else:
            stack += read_in(current)
    return counts


def read_in(node: Any) -> list[cst.CSTNode]:
    """Child nodes that may read a name, without those that bind one."""
    named: cst.CSTNode | None = None
    kind = type(node)
    if kind is cst.Attribute:
        named = node.attr
    elif kind is cst.Arg:
        named = node.keyword
    elif kind in _NAMED:
        named = node.name
    elif kind in (cst.AssignTarget, cst.For, cst.CompFor):
        named = node.target if names_of(node.target) else None
    return [child for child in children(node) if child is not named]


@lru_cache(maxsize=16384)
def bindings(node: cst.CSTNode) -> Counter[str]:
    """Number of bindings of each name within ``node``: assignments, loop targets, parameters, definitions."""
    counts: Counter[str] = Counter()
    if type(node) in _COMPOUND:
        _count_bound(node, counts)
        for part in children(node):
            counts.update(bindings(part))
        return counts
    for each in within(node):
        _count_bound(each, counts)
    return counts


def _count_bound(node: Any, counts: Counter[str]) -> None:
    """Adds the names that ``node`` itself binds."""
    kind = type(node)
    if kind in _TARGETED:
        counts.update(names_of(node.target))
    elif kind in _NAMED:
        counts[node.name.value] += 1
    elif kind is cst.AsName:
        counts.update(names_of(node.name))


def top_assignments(function: cst.FunctionDef) -> list[cst.Assign]:
    """Assignments of a function with one target, outside of branches and loops."""
    lines = [s for s in function.body.body if isinstance(s, cst.SimpleStatementLine)]
    return [s for line in lines for s in line.body if isinstance(s, cst.Assign) and len(s.targets) == 1]


def parts(target: cst.CSTNode, value: cst.BaseExpression) -> list[tuple[cst.CSTNode, cst.BaseExpression]]:
    """(target, value) of each assignment in ``target = value``, as far as its tuples show them."""
    sides = (target, value)
    shown = all(isinstance(side, cst.Tuple) for side in sides) and len(target.elements) == len(value.elements)  # type: ignore[attr-defined]
    if not shown or any(isinstance(e, cst.StarredElement) for side in sides for e in side.elements):  # type: ignore[attr-defined]
        return [(target, value)]
    both = zip(target.elements, value.elements, strict=True)  # type: ignore[attr-defined]
    return [part for one, other in both for part in parts(one.value, other.value)]


def pairs(assign: cst.Assign) -> list[tuple[str, cst.BaseExpression]]:
    """(name, value) in ``a = x`` and ``a, (b, c) = x, (y, z)``, as far as its tuples show them."""
    found = parts(assign.targets[0].target, assign.value) if len(assign.targets) == 1 else []
    return [(target.value, value) for target, value in found if isinstance(target, cst.Name)]


def assignments(function: cst.FunctionDef) -> list[cst.Assign]:
    """A function's assignments with one target, also in branches and loops."""
    return [node for node in within(function.body) if isinstance(node, cst.Assign) and len(node.targets) == 1]

"""References of a top-level statement to names of its module, and the names that would shadow a new name there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from cutegen_lab.bundle.modules import Import, imports_of, inner_body
from cutegen_lab.compile.scopes import bound_in, parts
from cutegen_lab.core.syntax import expression

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, eq=False)
class Reference:
    """A global name and attributes of it: ``root.a.b`` (``chain`` is the outermost node).

    ``around``: names bound by enclosing functions and classes. ``local``: set if an import inside a function binds the
    root. ``owner``: the function or method whose body contains it; None at the top level. ``member``: the method whose
    definition contains it: body, signature or decorators. ``now``: whether it is evaluated when the module is executed.
    ``annotation``: the annotation that contains it, if any. ``quoted``: the string constant that contains it, if any.
    ``fstring``: the outermost f-string that contains it.
    """

    root: str
    names: tuple[str, ...]
    chain: ast.expr
    around: frozenset[str]
    local: tuple[Import, ...] = ()
    owner: Function | None = None
    member: Function | None = None
    now: bool = True
    stored: bool = False
    annotation: ast.expr | None = None
    quoted: ast.Constant | None = None
    fstring: ast.JoinedStr | None = None
    decorates: Function | ast.ClassDef | None = None
    default_of: tuple[Function, ast.expr] | None = None
    call: ast.Call | None = None  # the call whose function is the chain


@dataclass
class Found:
    references: list[Reference] = field(default_factory=list)
    inner_imports: list[tuple[ast.Import | ast.ImportFrom, Function | None]] = field(default_factory=list)
    globals: list[tuple[ast.Global, Function | None]] = field(default_factory=list)


@dataclass(frozen=True)
class _Where:
    around: frozenset[str] = frozenset()
    local: Mapping[str, tuple[Import, ...]] = field(default_factory=dict)
    # Names bound in the enclosing class body, and the first line of each.
    of_class: Mapping[str, int] = field(default_factory=dict)
    owner: Function | None = None
    member: Function | None = None
    now: bool = True
    annotation: ast.expr | None = None
    quoted: ast.Constant | None = None
    fstring: ast.JoinedStr | None = None
    decorates: Function | ast.ClassDef | None = None
    default_of: tuple[Function, ast.expr] | None = None


def references(statement: ast.stmt) -> Found:
    found = Found()
    _walk(statement, _Where(), found)
    return found


def _walk(node: ast.AST, where: _Where, found: Found) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        _function(node, where, found)
    elif isinstance(node, ast.ClassDef):
        _class(node, where, found)
    elif isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        outside, inside = parts(node)
        _all(outside, where, found)
        own = bound_in(node, inside)
        _all(inside, replace(where, around=where.around | own, local=_without(where.local, own), of_class={}), found)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        found.inner_imports.append((node, where.owner))
    elif isinstance(node, ast.Global):
        found.globals.append((node, where.owner))
    elif isinstance(node, ast.Call) and _chain(node.func):
        _name(node.func, where, found, node)
        _all([*node.args, *node.keywords], where, found)
    elif isinstance(node, (ast.Name, ast.Attribute)) and _chain(node):
        _name(node, where, found, None)
    elif isinstance(node, ast.Subscript) and _is_literal(node.value):
        _walk(node.value, where, found)  # strings inside Literal are values
    elif isinstance(node, ast.AnnAssign):
        _annotation(node.annotation, where, found)
        _all([child for child in (node.target, node.value) if child is not None], where, found)
    elif isinstance(node, ast.Constant):
        if where.annotation is not None and isinstance(node.value, str) and where.quoted is None:
            _quoted(node, node.value, where, found)
    elif isinstance(node, ast.JoinedStr):
        _all(ast.iter_child_nodes(node), replace(where, fstring=where.fstring or node), found)
    else:
        _all(ast.iter_child_nodes(node), where, found)


def _is_literal(node: ast.expr) -> bool:
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) == "Literal"


def _all(nodes: Iterator[ast.AST] | list[ast.AST], where: _Where, found: Found) -> None:
    for node in nodes:
        _walk(node, where, found)


def _function(node: Function, where: _Where, found: Found) -> None:
    for decorator in node.decorator_list:
        _walk(decorator, replace(where, decorates=node), found)
    every = node.args
    arguments = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
    for default in [*every.defaults, *every.kw_defaults]:
        if default is not None:
            _walk(default, replace(where, default_of=(node, default)), found)
    for annotation in [*(a.annotation for a in arguments if a), node.returns]:
        if annotation is not None:
            _annotation(annotation, where, found)
    own = bound_in(node, list(node.body))
    local = dict(_without(where.local, own))
    for statement in _own_statements(node.body):
        for name, imported in imports_of(statement):
            local[name] = (*local.get(name, ()), imported)
    inside = _Where(where.around | own, local, {}, where.owner or node, where.member, False)
    _all(list(node.body), inside, found)


def _class(node: ast.ClassDef, where: _Where, found: Found) -> None:
    for decorator in node.decorator_list:
        _walk(decorator, replace(where, decorates=node), found)
    _all([*node.bases, *node.keywords], where, found)
    names: dict[str, int] = {}
    for statement in _own_statements(node.body):
        for child in ast.walk(statement) if not isinstance(statement, _SCOPES) else [statement]:
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                names.setdefault(child.id, child.lineno)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.setdefault(statement.name, statement.end_lineno or statement.lineno)
    for child in node.body:
        member = child if where.member is None and isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
        _walk(child, replace(where, of_class=names, member=where.member or member), found)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of this scope, including those nested in ``if``, ``for``, ``with`` and ``try``."""
    for statement in body:
        yield statement
        if not isinstance(statement, _SCOPES):
            for child in ast.iter_child_nodes(statement):
                if isinstance(child, ast.stmt):
                    yield from _own_statements([child])
                else:
                    yield from _own_statements(inner_body(child))


def _annotation(node: ast.expr, where: _Where, found: Found) -> None:
    _walk(node, replace(where, annotation=node), found)


def _quoted(node: ast.Constant, text: str, where: _Where, found: Found) -> None:
    try:
        inner = expression(text.strip())
    except (SyntaxError, ValueError):
        return
    _walk(inner, replace(where, quoted=node), found)


def _chain(node: ast.expr) -> tuple[str, tuple[str, ...]] | None:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, tuple(reversed(names))) if isinstance(node, ast.Name) else None


def _name(node: ast.expr, where: _Where, found: Found, call: ast.Call | None) -> None:
    chain = _chain(node)
    assert chain is not None
    root, names = chain
    local = where.local.get(root, ())
    if root in where.around and not local:
        return
    innermost = node
    while isinstance(innermost, ast.Attribute):
        innermost = innermost.value
    stored = isinstance(innermost, ast.Name) and not isinstance(innermost.ctx, ast.Load)
    if root in where.of_class and (stored or where.of_class[root] < node.lineno):
        return
    around = where.around - {root} if local else where.around
    found.references.append(
        Reference(
            root,
            names,
            node,
            around | frozenset(where.of_class),
            local,
            where.owner,
            where.member,
            where.now,
            stored,
            where.annotation,
            where.quoted,
            where.fstring,
            where.decorates,
            where.default_of,
            call,
        )
    )


def _without(
    local: Mapping[str, tuple[Import, ...]], names: frozenset[str] | set[str]
) -> dict[str, tuple[Import, ...]]:
    return {name: found for name, found in local.items() if name not in names}

"""Tuples and lists that are written out in the text (Python: displays)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import libcst as cst

from cutegen_lab.templates.emit.evaluate import UNKNOWN, evaluate
from cutegen_lab.templates.emit.names import dotted, loads, within

Display = cst.Tuple | cst.List
Shown = Callable[[cst.BaseExpression], Display | None]
"""Returns the display that an expression stands for, if known."""


def display(node: cst.CSTNode | None) -> Display | None:
    """``node`` if it is a tuple or a list without ``*``."""
    if isinstance(node, cst.Tuple | cst.List) and all(isinstance(each, cst.Element) for each in node.elements):
        return node
    return None


def elements(node: Display) -> list[cst.BaseExpression]:
    return [each.value for each in node.elements]


def tuple_of(values: Iterable[cst.BaseExpression]) -> cst.Tuple:
    found = [cst.Element(value.deep_clone()) for value in values]
    return cst.Tuple([found[0].with_changes(comma=cst.Comma())] if len(found) == 1 else found)


def list_of(values: Iterable[cst.BaseExpression]) -> cst.List:
    return cst.List([cst.Element(value.deep_clone()) for value in values])


def is_steady(node: cst.CSTNode) -> bool:
    """Whether ``node`` computes nothing and depends only on the names in it: a literal, a name, an attribute,
    ``Float32`` of a literal, or a tuple or list of these."""
    match node:
        case cst.Name() | cst.Integer() | cst.Float() | cst.SimpleString():
            return True
        case cst.Attribute(value=inner) | cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return is_steady(inner)
        case cst.Tuple() | cst.List():
            return display(node) is not None and all(is_steady(each) for each in elements(node))
        case cst.Call(func=cst.Name(value="Float32"), args=[cst.Arg(value=inner, keyword=None, star="")]):
            return not isinstance(inner, cst.Name) and is_steady(inner)
    return False


def index_of(node: cst.CSTNode) -> int | None:
    """``i`` of ``x[i]``, if it is a literal of at least 0."""
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        at = evaluate(node.slice[0].slice.value, {})
        return at if at is not UNKNOWN and type(at) is int and at >= 0 else None
    return None


def sequence(node: cst.BaseExpression, shown: Shown) -> Display | None:
    """The elements over which a loop iterates; also through ``zip`` and ``enumerate``."""
    if not isinstance(node, cst.Call) or dotted(node.func) not in ("zip", "enumerate", "tuple"):
        return shown(node)
    plain = all(argument.keyword is None and not argument.star for argument in node.args)
    walked = [sequence(argument.value, shown) for argument in node.args] if plain else []
    known = [elements(each) for each in walked if each is not None]
    if not known or len(known) < len(walked):
        return None
    if dotted(node.func) == "zip":
        return list_of(tuple_of(each) for each in zip(*known, strict=False))
    if dotted(node.func) == "tuple":
        return tuple_of(known[0])
    return list_of(tuple_of([cst.Integer(str(at)), each]) for at, each in enumerate(known[0]))


def matched(target: cst.CSTNode, value: cst.BaseExpression, shown: Shown) -> dict[str, cst.BaseExpression] | None:
    """The value of each name in ``target``; None if the text does not show it."""
    if isinstance(target, cst.Name):
        return {target.value: value}
    whole = shown(value) if isinstance(target, cst.Tuple | cst.List) else None
    if whole is None or not isinstance(target, cst.Tuple | cst.List):
        return None
    given = with_star_gathered(target.elements, elements(whole))
    if given is None:
        return None
    found = dict[str, cst.BaseExpression]()
    for each, part in zip(target.elements, given, strict=True):
        inner = matched(each.value, part, shown)
        if inner is None:
            return None
        found |= inner
    return found


def with_star_gathered(
    targets: Sequence[cst.BaseElement], values: Sequence[cst.BaseExpression]
) -> list[cst.BaseExpression] | None:
    """A value for each target: a list for the starred one. None if their numbers do not match."""
    stars = [at for at, each in enumerate(targets) if isinstance(each, cst.StarredElement)]
    if not stars:
        return [*values] if len(values) == len(targets) else None
    behind = len(targets) - stars[0] - 1
    if len(values) < len(targets) - 1:
        return None
    middle = list_of(values[stars[0] : len(values) - behind])
    return [*values[: stars[0]], middle, *values[len(values) - behind :]]


def reads_any(node: cst.CSTNode, names: Iterable[str] | Mapping[str, object]) -> bool:
    read = loads(node)
    return any(read[name] for name in names)


def mutated(node: cst.CSTNode) -> set[str]:
    """Names whose elements are assigned within ``node``, or on which a method is called."""
    found = set[str]()
    for each in within(node):
        if isinstance(each, cst.AssignTarget | cst.AugAssign):
            owner: cst.CSTNode = each.target
            while isinstance(owner, cst.Subscript | cst.Attribute):
                owner = owner.value
            if isinstance(owner, cst.Name) and (owner is not each.target or isinstance(each, cst.AugAssign)):
                found.add(owner.value)
        elif isinstance(each, cst.Call) and isinstance(each.func, cst.Attribute):
            found |= {each.func.value.value} if isinstance(each.func.value, cst.Name) else set()
    return found

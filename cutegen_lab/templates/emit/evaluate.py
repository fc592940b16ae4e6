"""Evaluates expressions of literals, constants of the module and arithmetic. Needs no GPU and no shapes."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import libcst as cst

from cutegen_lab.core.syntax import expression
from cutegen_lab.templates.emit.names import const_expr_argument, dotted, names_of, pairs


class _Unknown:
    """The type of :data:`UNKNOWN`."""


UNKNOWN: Final = _Unknown()
_LARGEST = 1 << 63
_MOST_ELEMENTS = 64
_LITERALS = {"True": True, "False": False, "None": None}
_ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    cst.Add: operator.add, cst.Subtract: operator.sub, cst.Multiply: operator.mul,
    cst.FloorDivide: operator.floordiv, cst.Modulo: operator.mod,
}  # fmt: skip
_COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    cst.Equal: operator.eq, cst.NotEqual: operator.ne, cst.LessThan: operator.lt, cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt, cst.GreaterThanEqual: operator.ge, cst.Is: operator.is_, cst.IsNot: operator.is_not,
    cst.In: lambda a, b: a in b, cst.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_CALLS: Mapping[str, Callable[..., Any]] = {
    "min": min, "max": max, "len": len, "math.gcd": math.gcd, "math.prod": math.prod,
    "cute.ceil_div": lambda a, b: -(-a // b),
}  # fmt: skip
Constants = Mapping[str, Any]


def evaluate(node: cst.CSTNode, constants: Constants) -> Any:
    """Value of ``node``: a number, text, boolean, None or a tuple of these; :data:`UNKNOWN` otherwise."""
    try:
        found = _evaluate(node, constants)
    except (TypeError, ValueError, ZeroDivisionError, IndexError, AttributeError):
        return UNKNOWN
    return UNKNOWN if isinstance(found, int) and abs(found) > _LARGEST else found


def _evaluate(node: cst.CSTNode, constants: Constants) -> Any:
    match node:
        case cst.Name(value=name):
            return _LITERALS[name] if name in _LITERALS else constants.get(name, UNKNOWN)
        case cst.Integer() | cst.Float() | cst.SimpleString():
            return ast.literal_eval(expression(node.value))
        case cst.Tuple(elements=elements):
            values = [_evaluate(element.value, constants) for element in elements]
            starred = any(isinstance(element, cst.StarredElement) for element in elements)
            return UNKNOWN if starred or UNKNOWN in values else tuple(values)
        case cst.UnaryOperation(operator=cst.Minus() | cst.Not()):
            value = _evaluate(node.expression, constants)
            known = value is not UNKNOWN
            return (-value if isinstance(node.operator, cst.Minus) else not value) if known else UNKNOWN
        case cst.BinaryOperation(left=left, right=right):
            return _applied(_ARITHMETIC.get(type(node.operator)), [left, right], constants)
        case cst.Comparison(comparisons=[only]):
            return _applied(_COMPARISONS.get(type(only.operator)), [node.left, only.comparator], constants)
        case cst.BooleanOperation():
            return _boolean(node, constants)
        case cst.Subscript(value=whole, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            return _applied(_element, [whole, index], constants)
        case cst.ListComp() | cst.GeneratorExp():
            return _elements(node, constants)
        case cst.Call(func=cst.Attribute(value=whole, attr=cst.Name(value="index")), args=[only]):
            return _applied(lambda values, value: tuple(values).index(value), [whole, only.value], constants)
        case cst.Call():
            inner = const_expr_argument(node)
            if inner is not None:
                return _evaluate(inner, constants)
            plain = all(argument.keyword is None and not argument.star for argument in node.args)
            function = _CALLS.get(dotted(node.func)) if plain else None
            return _applied(function, [argument.value for argument in node.args], constants)
    return UNKNOWN


def _element(values: Any, index: Any) -> Any:
    return values[index] if isinstance(values, tuple) and type(index) is int else UNKNOWN


def _elements(node: cst.ListComp | cst.GeneratorExp, constants: Constants) -> Any:
    """The elements of a comprehension over a known tuple, as a tuple."""
    walk = node.for_in
    values = _evaluate(walk.iter, constants)
    names = names_of(walk.target)
    if (
        not isinstance(values, tuple)
        or len(values) > _MOST_ELEMENTS
        or walk.inner_for_in
        or walk.ifs
        or len(names) != 1
    ):
        return UNKNOWN
    found = tuple(_evaluate(node.elt, {**constants, names[0]: value}) for value in values)
    return UNKNOWN if UNKNOWN in found else found


def _boolean(node: cst.BooleanOperation, constants: Constants) -> Any:
    """Value of a boolean operation; one known side may be enough."""
    left, right = (_evaluate(side, constants) for side in (node.left, node.right))
    deciding = isinstance(node.operator, cst.Or)
    if left is not UNKNOWN:
        return left if bool(left) is deciding else right
    return UNKNOWN


def _applied(function: Callable[..., Any] | None, nodes: list[cst.BaseExpression], constants: Constants) -> Any:
    values = [_evaluate(node, constants) for node in nodes]
    return UNKNOWN if function is None or any(value is UNKNOWN for value in values) else function(*values)


def returned(function: cst.FunctionDef, constants: Constants) -> Any:
    """The result of a function without parameters, if its statements can be evaluated; else UNKNOWN."""
    known = dict(constants)
    if function.params.params or not isinstance(function.body, cst.IndentedBlock):
        return UNKNOWN
    for statement in function.body.body:
        only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        match only:
            case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()):
                pass
            case cst.Assign():
                known.update((name, evaluate(value, known)) for name, value in pairs(only))
            case cst.Return(value=cst.BaseExpression() as value):
                return evaluate(value, known)
            case _:
                return UNKNOWN
    return UNKNOWN


def literal(value: Any) -> cst.BaseExpression:
    """Expression for ``value``."""
    return cst.parse_expression(repr(value))

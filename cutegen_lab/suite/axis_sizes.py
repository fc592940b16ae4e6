"""Sizes of axes that expressions of other axes give (SOL-ExecBench's axes of type "expr")."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.core.syntax import expression

_MOST_POWER = 8
_MOST = 1 << 63  # of a size, and of what is computed on the way
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def axis_size(text: str, sizes: Mapping[str, int]) -> int:
    """Value of ``text`` for these ``sizes``: +, -, *, /, //, %, and ** with a constant. Raises ProblemError, also for a
    value that is not a whole number."""
    try:
        found = _value(expression(text), sizes)
        if found == int(found):
            return int(found)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError):
        pass
    raise ProblemError(f"cannot compute the axis {text!r}", "Write it with +, -, *, /, //, %, ** of other axes.")


def _value(node: ast.expr, sizes: Mapping[str, int]) -> float:
    """Raises ValueError for what is no such expression, or is too large."""
    if abs(found := _computed(node, sizes)) > _MOST:
        raise ValueError
    return found


def _computed(node: ast.expr, sizes: Mapping[str, int]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in sizes:
            return sizes[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            result: float = _OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
            return result
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if 0 <= power <= _MOST_POWER:
            return _value(left, sizes) ** power
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, sizes)
    raise ValueError

"""Rules from ATen operators to the graph: one small function for each operator. Operators are named by text; torch is
not imported.

A rule takes a Lowering and the arguments of the call, with tensors as Values, and returns a Value (or a tuple for
operators with several results). Operators without a rule are Unsupported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


RuleType = TypeVar("RuleType", bound=Rule)


def rule(*names: str) -> Callable[[RuleType], RuleType]:
    """Registers a function for ATen operators (named without ``aten.``)."""

    def register(function: RuleType) -> RuleType:
        for name in names:
            RULES[f"aten.{name}"] = function
        return function

    return register


def plain(op: str, *names: str) -> None:
    """Registers an ATen operator that is a single operation of the graph with the same tensor arguments."""
    for name in names:
        RULES[f"aten.{name}"] = lambda g, *operands, _op=op: g.map(_op, *operands)

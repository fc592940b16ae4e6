"""What each ATen operator is in the graph: one small function an operator (no torch here: operators go by name).

A rule takes a Lowering and the call's arguments, tensors as Values, and answers with a Value (or a tuple of them for
operators with several results). What has no rule is Unsupported, by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


RuleType = TypeVar("RuleType", bound=Rule)


def rule(*names: str) -> Callable[[RuleType], RuleType]:
    """Registers a function for ATen operators (names without ``aten.``)."""

    def register(function: RuleType) -> RuleType:
        for name in names:
            RULES[f"aten.{name}"] = function
        return function

    return register


def plain(op: str, *names: str) -> None:
    """An ATen operator that is one operation of the graph, its tensor arguments in the same order."""
    for name in names:
        RULES[f"aten.{name}"] = lambda g, *operands, _op=op: g.map(_op, *operands)

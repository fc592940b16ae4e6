"""Which two reductions of a row can be done in one reading of it: a maximum, and a sum of exponentials below it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutegen_lab.templates.expr import Const, Graph, Map, Reduce


@dataclass(frozen=True)
class Online:
    """``total`` sums exp(f - ``shift``), where ``top`` is the maximum of f, and ``shift`` that or 0 where it is not
    finite."""

    top: int
    total: int
    shift: int


def online(graph: Graph) -> Online | None:
    """The first such pair."""
    for index, node in enumerate(graph.nodes):
        if not (isinstance(node, Reduce) and node.op == "add"):
            continue
        power = graph.nodes[node.args[0]]
        distance = graph.nodes[power.args[0]] if isinstance(power, Map) and power.op == "exp" else None
        if not (isinstance(distance, Map) and distance.op == "sub"):
            continue
        value, shift = distance.args
        top = _maximum(graph, shift)
        if top is not None and graph.nodes[top].args[0] == value and graph.depths()[top] == 1:
            return Online(top, index, shift)
    return None


def _maximum(graph: Graph, shift: int) -> int | None:
    """The maximum that ``shift`` is; also as logsumexp writes it, 0 in place of an infinity."""
    node = graph.nodes[shift]
    if isinstance(node, Reduce):
        return shift if node.op == "max" else None
    if not (isinstance(node, Map) and node.op == "where" and graph.nodes[node.args[1]] == Const(0.0)):
        return None
    test, top = graph.nodes[node.args[0]], node.args[2]
    if not (isinstance(test, Map) and test.op == "eq" and graph.nodes[test.args[1]] == Const(math.inf)):
        return None
    return _maximum(graph, top) if graph.nodes[test.args[0]] == Map("abs", (top,)) else None

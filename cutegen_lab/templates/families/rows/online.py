"""Pairs of dependent reductions that one pass over a row can compute.

A maximum and a sum of exponentials (online softmax); a mean and a sum of squared deviations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutegen_lab.templates.frontend.expr import Const, Elementwise, Extent, Graph, Reduce


@dataclass(frozen=True)
class Online:
    """``total``: sum of exp(f - ``shift``). ``top``: maximum of f. ``shift``: ``top``, or 0 if that is not finite."""

    top: int
    total: int
    shift: int

    @property
    def reductions(self) -> tuple[int, int]:
        return self.top, self.total


@dataclass(frozen=True)
class Moments:
    """``total``: sum of f. ``mean``: ``total`` / row length. ``squares``: sum of (f - ``mean``)²."""

    total: int
    squares: int
    mean: int

    @property
    def reductions(self) -> tuple[int, int]:
        return self.total, self.squares


def _moments(graph: Graph) -> Moments | None:
    for index, node in enumerate(graph.nodes):
        if not (isinstance(node, Reduce) and node.op == "add"):
            continue
        square = graph.nodes[node.args[0]]
        if not (isinstance(square, Elementwise) and square.op == "mul" and len(set(square.args)) == 1):
            continue
        centred = graph.nodes[square.args[0]]
        if not (isinstance(centred, Elementwise) and centred.op == "sub"):
            continue
        value, mean = centred.args
        total = _sum_of(graph, mean)
        if total is not None and graph.nodes[total].args[0] == value and graph.depths()[total] == 1:
            return Moments(total, index, mean)
    return None


def in_one_walk(graph: Graph) -> Online | Moments | None:
    """The first pair that can share a pass, or None."""
    return _online(graph) or _moments(graph)


def _sum_of(graph: Graph, mean: int) -> int | None:
    """The sum that node ``mean`` divides by the row length, or None."""
    node = graph.nodes[mean]
    if not (isinstance(node, Elementwise) and node.op == "div" and graph.nodes[node.args[1]] == Extent()):
        return None
    total = graph.nodes[node.args[0]]
    return node.args[0] if isinstance(total, Reduce) and total.op == "add" else None


def _online(graph: Graph) -> Online | None:
    for index, node in enumerate(graph.nodes):
        if not (isinstance(node, Reduce) and node.op == "add"):
            continue
        power = graph.nodes[node.args[0]]
        distance = graph.nodes[power.args[0]] if isinstance(power, Elementwise) and power.op == "exp" else None
        if not (isinstance(distance, Elementwise) and distance.op == "sub"):
            continue
        value, shift = distance.args
        top = _maximum(graph, shift)
        if top is not None and graph.nodes[top].args[0] == value and graph.depths()[top] == 1:
            return Online(top, index, shift)
    return None


def _maximum(graph: Graph, shift: int) -> int | None:
    """The maximum that node ``shift`` is, or None. In logsumexp, ``shift`` is 0 if the maximum is infinite."""
    node = graph.nodes[shift]
    if isinstance(node, Reduce):
        return shift if node.op == "max" else None
    if not (isinstance(node, Elementwise) and node.op == "where" and graph.nodes[node.args[1]] == Const(0.0)):
        return None
    test, top = graph.nodes[node.args[0]], node.args[2]
    if not (isinstance(test, Elementwise) and test.op == "eq" and graph.nodes[test.args[1]] == Const(math.inf)):
        return None
    return _maximum(graph, top) if graph.nodes[test.args[0]] == Elementwise("abs", (top,)) else None

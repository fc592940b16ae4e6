"""Bounds of values that hold for all inputs (NaN excepted)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from cutegen_lab.templates.frontend.expr import Const, Elementwise, Node, Reduce

Range = tuple[float, float]  # (least, largest) value; may be infinite
ANYTHING: Range = (-math.inf, math.inf)
KNOWN: dict[str, Range] = {
    "sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "erf": (-1.0, 1.0), "sin": (-1.0, 1.0), "cos": (-1.0, 1.0),
    "exp": (0.0, math.inf), "exp2": (0.0, math.inf), "abs": (0.0, math.inf), "sqrt": (0.0, math.inf),
}  # fmt: skip
ROUNDED: dict[str, Callable[[float], int]] = {
    "round": round, "trunc": math.trunc, "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip


def range_of(nodes: Sequence[Node], index: int) -> Range:
    """Bounds of the value of node ``index``."""
    found = list[Range]()
    for node in nodes[: index + 1]:
        found.append(_range(node, [found[argument] for argument in node.args]))
    return found[index]


def _range(node: Node, of: Sequence[Range]) -> Range:
    if isinstance(node, Const):
        return (node.value, node.value)
    if isinstance(node, Reduce) and node.op in ("max", "min"):
        return of[0]
    if not isinstance(node, Elementwise) or not of:
        return ANYTHING
    (low, high), (other_low, other_high) = of[0], of[-1]
    match node.op:
        case "where":
            return (min(of[1][0], other_low), max(of[1][1], other_high))
        case "max":
            return (max(low, other_low), max(high, other_high))
        case "min":
            return (min(low, other_low), min(high, other_high))
        case "add":
            return (low + other_low, high + other_high)
        case "sub":
            return (low - other_high, high - other_low)
        case "neg":
            return (-high, -low)
        case "mul" if all(map(math.isfinite, (low, high, other_low, other_high))):
            ends = [a * b for a in of[0] for b in of[-1]]
            return (min(ends), max(ends))
        case op if op in ROUNDED:
            low, high = (end if math.isinf(end) else float(ROUNDED[op](end)) for end in of[0])
            return (low, high)
    return KNOWN.get(node.op, ANYTHING)

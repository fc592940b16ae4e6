"""Graphs as one-line formulas, for the docstrings of generated kernels."""

from __future__ import annotations

from cutegen_lab.templates.frontend.expr import (
    Const,
    Dims,
    Dot,
    Elementwise,
    Extent,
    FullReduce,
    Gather,
    Graph,
    Iota,
    Load,
    Pool,
    ReducedIota,
    Scan,
    Size,
)

_INFIX = {"add": "+", "sub": "-", "mul": "·", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
          "ne": "!=", "and": "and", "or": "or"}  # fmt: skip
_FOLDS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
_LIMIT = 200


def formula(graph: Graph, node: int, names: list[str]) -> str:
    """A formula such as ``(x - mean(x)) · rsqrt(…)``, at most 200 characters long."""
    text = _text(graph, node, names, 0)
    return text if len(text) <= _LIMIT else text[: _LIMIT - 1] + "…"


def _text(graph: Graph, index: int, names: list[str], depth: int) -> str:
    node = graph.nodes[index]
    if isinstance(node, Load):
        return names[node.tensor] + _part(graph, node, names)
    if isinstance(node, Dot):
        return (
            f"{_operand(names[node.first], node.first_dims, -1)} @ {_operand(names[node.second], node.second_dims, -2)}"
        )
    if isinstance(node, Pool):
        return f"avg_pool2d({names[node.tensor]}, {node.window[0]}×{node.window[1]})"
    if isinstance(node, Const):
        return f"{node.value:g}"
    if isinstance(node, Extent):
        return "rows" if node.rows else "n"
    if isinstance(node, Size):
        return node.text(names)
    if isinstance(node, ReducedIota):
        return "index"
    if isinstance(node, Iota):
        return f"index {node.dim}"
    if depth > 24:
        return "…"
    args = [_text(graph, a, names, depth + 1) for a in node.args]
    if isinstance(node, Elementwise) and node.op in _INFIX:
        if node.op in ("mul", "div"):  # `@` and `·` have no agreed order
            args = [f"({t})" if isinstance(graph.nodes[a], Dot) else t for a, t in zip(node.args, args, strict=True)]
        text = f"{args[0]} {_INFIX[node.op]} {args[1]}"
        return text if depth == 0 else f"({text})"
    if isinstance(node, Elementwise):
        return f"{node.op}({', '.join(args)})"
    if isinstance(node, Gather):
        before = [":"] * node.axis
        return f"{names[node.tensor]}[{', '.join([*before, args[0]])}]"
    if isinstance(node, Scan):
        return f"{'reverse ' * node.reverse}cum{_FOLDS[node.op]}({args[0]})"
    if isinstance(node, FullReduce):
        return f"{_FOLDS[node.op]} over rows of {args[0]}"
    inner = args[0][1:-1] if args[0].startswith("(") and args[0].endswith(")") else args[0]
    return f"{_FOLDS[node.op]}({inner if inner.count('(') == inner.count(')') else args[0]})"


def _part(graph: Graph, load: Load, names: list[str]) -> str:
    """Text of a slice, such as ``[:, x.shape[1] // 2 :]``; the end is given only for slices that start at 0."""
    entries = []
    for number in load.slices:
        if number is None:
            entries.append(":")
            continue
        start, length = (n.text(names) for n in (graph.slices[number].start, graph.slices[number].length))
        entries.append(start if length == "1" else f":{length}" if start == "0" else f"{start}:")
    return f"[{', '.join(entries)}]" if entries else ""


def _operand(name: str, dims: Dims, k_at: int) -> str:
    """``x``, or ``x.mT`` if ``@`` would sum over another dimension than k."""
    rank = sum(dim is not None for dim in dims)
    return f"{name}.mT" if rank > 1 and dims[-1] != rank + k_at else name

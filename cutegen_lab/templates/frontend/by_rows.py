"""Splits full reductions into two steps: over the last dimension, then over rows. Needed for inputs that are broadcast
along rows."""

from __future__ import annotations

from dataclasses import replace

from cutegen_lab.templates.frontend.expr import (
    Dot,
    Elementwise,
    Extent,
    FullReduce,
    Gather,
    Graph,
    Iota,
    Node,
    Pool,
    Reduce,
    ReducedIota,
    Scan,
)


def by_rows(graph: Graph) -> Graph:
    """An equivalent graph that reduces rows first, if ``graph`` folds all dimensions in one pass and an input is
    broadcast along some of them (the input then has no single stride); otherwise ``graph``."""
    everything = tuple(range(len(graph.space)))
    plain = not any(
        isinstance(node, Dot | ReducedIota | Gather | Iota | Pool | Scan | FullReduce) for node in graph.nodes
    )
    if graph.reduced != everything or len(everything) < 2 or max(graph.depths()) != 1 or not plain:
        return graph
    if not any(len({dim is None for dim in load.dims}) > 1 for _, load in graph.loads()):
        return graph
    nodes: list[Node] = []
    moved: list[int] = []
    for node in graph.nodes:
        if isinstance(node, Elementwise | Reduce):
            node = replace(node, args=tuple(moved[a] for a in node.args))
        nodes.append(node)
        if isinstance(node, Reduce):
            nodes.append(FullReduce(node.op, (len(nodes) - 1,)))
        elif node == Extent():
            nodes.append(Extent(rows=True))
            nodes.append(Elementwise("mul", (len(nodes) - 2, len(nodes) - 1)))
        moved.append(len(nodes) - 1)
    return replace(
        graph,
        nodes=tuple(nodes),
        outputs=tuple(replace(output, node=moved[output.node]) for output in graph.outputs),
        names=tuple((moved[index], name) for index, name in graph.names),
        reduced=everything[-1:],
    )

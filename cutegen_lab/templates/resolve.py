"""The last step of reading: one iteration space for the whole graph, and every load's place in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.expr import Graph, Load, Output
from cutegen_lab.templates.lowering import Lowering, Unsupported, Value


def resolve(lowering: Lowering, results: Sequence[Value], workload: Workload) -> Graph:
    """Raises Unsupported where the values do not share one iteration space."""
    axes = lowering.axes
    nodes = lowering.build.nodes
    candidates = [axes.resolve(a) for a in [*lowering.spaces, *(r.axes for r in results)]]
    folded = set(axes.resolve(lowering.reduced or ()))
    space = max(
        candidates, key=lambda a: (folded <= set(a), len({s for s in a if axes.size(s) > 1}), -len(a)), default=()
    )
    if not lowering.reduced:
        space = axes.resolve(results[0].axes)
    space = tuple(s for s in space if not axes.is_made(s))
    if len(set(space)) != len(space):
        raise Unsupported("a tensor combined with its own transpose")
    reduced = axes.resolve(lowering.reduced or ())
    if any(s not in space for s in reduced):
        raise Unsupported("reductions over dimensions that the result does not share")

    where = {s: d for d, s in enumerate(space)}
    resolved = []
    for node in nodes:
        if isinstance(node, Load):
            symbols = axes.resolve([s for s in node.dims if s is not None])
            stray = [s for s in symbols if s not in where and axes.size(s) > 1]
            if stray:
                raise Unsupported(f"input {workload.inputs[node.tensor].name} walking along a dimension of its own")
            node = replace(node, dims=tuple(symbols.index(s) if s in symbols else None for s in space))
        resolved.append(node)

    outputs = []
    for position, result in enumerate(results):
        symbols = axes.resolve(result.axes)
        if [s for s in symbols if s in where] != [s for s in space if s in symbols]:
            raise Unsupported(f"output {position} with its dimensions in another order")
        if any(s not in where and axes.size(s) > 1 for s in symbols):
            raise Unsupported(f"output {position} larger than what is computed")
        outputs.append(Output(result.node, tuple(symbols.index(s) if s in symbols else None for s in space)))

    graph = Graph(
        nodes=tuple(resolved),
        outputs=tuple(outputs),
        space=tuple(axes.size(s) for s in space),
        extent_from=(),
        reduced=_adjacent([where[s] for s in reduced]),
        names=tuple(sorted(lowering.build.names.items())),
    ).pruned()
    return replace(graph, extent_from=_extents(graph))


def _adjacent(dims: Sequence[int]) -> tuple[int, ...]:
    ordered = tuple(sorted(dims))
    if ordered and ordered != tuple(range(ordered[0], ordered[0] + len(ordered))):
        raise Unsupported("a reduction over dimensions that are not next to each other")
    return ordered


def _extents(graph: Graph) -> tuple[tuple[int, int], ...]:
    found = []
    for d in range(len(graph.space)):
        source = next(((n.tensor, n.dims[d]) for _, n in graph.loads() if n.dims[d] is not None), None)
        if source is None or source[1] is None:
            raise Unsupported("a result larger than every input (a size that comes from expand)")
        found.append((source[0], source[1]))
    return tuple(found)

"""Steps of an epilogue on a row that stays in registers: one for each depth of reductions.

Between two steps the accumulators hold one value, if all later values follow from one: first the sum with its residual,
then the deviation from the mean, or the exponential.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cutegen_lab.templates.families.rows.online import Moments, Online, in_one_walk
from cutegen_lab.templates.frontend.expr import Dot, Elementwise, Graph, Reduce


@dataclass(frozen=True)
class Step:
    """One step of an epilogue, as nodes. ``before``: the nodes held in registers before it. ``keep``: those held after
    it. ``folded``: the reductions that the step computes."""

    before: tuple[int, ...]
    keep: tuple[int, ...]
    folded: tuple[int, ...]


def steps(graph: Graph) -> list[Step]:
    """One step for each depth, in order."""
    depths = graph.depths()
    held = tuple(index for index, _ in graph.dots())
    found = list[Step]()
    for depth in range(max(depths)):
        ahead = [i for i, node in enumerate(graph.nodes) if isinstance(node, Reduce) and depths[i] > depth]
        roots = [*(graph.nodes[i].args[0] for i in ahead), *(output.node for output in graph.outputs)]
        keep = _kept(graph, held, roots, depth)
        found.append(Step(held, keep, tuple(i for i in ahead if depths[i] == depth + 1)))
        held = keep
    return found


def _kept(graph: Graph, held: tuple[int, ...], roots: Sequence[int], depth: int) -> tuple[int, ...]:
    """The last node with at most ``depth`` reductions before it that lies on every path from ``held`` to ``roots`` (a
    dominator); ``held`` if there is none."""
    depths = graph.depths()
    for index in reversed(range(len(graph.nodes))):
        known = (
            depths[index] <= depth and isinstance(graph.nodes[index], Elementwise | Dot) and not graph.is_truth(index)
        )
        if known and graph.varies(index) and not set(held) & _reached(graph, roots, index):
            return (index,)
    return held


def _reached(graph: Graph, roots: Iterable[int], without: int) -> set[int]:
    """Nodes on which ``roots`` depend by a path without reductions and without the node ``without``."""
    found, stack = set[int](), list(roots)
    while stack:
        index = stack.pop()
        if index != without and index not in found and not isinstance(graph.nodes[index], Reduce):
            found.add(index)
            stack += graph.nodes[index].args
    return found


def in_parts(graph: Graph) -> Online | Moments | bool:
    """Whether a second kernel can combine the tiles' partial results of a row. Of dependent reductions, only a pair
    that shares a pass can be combined: the result is the pair, or True if no reduction depends on another."""
    if any(graph.varies(output.node) for output in graph.outputs):
        return False
    depths, pair = graph.depths(), in_one_walk(graph)
    late = [i for i, node in enumerate(graph.nodes) if isinstance(node, Reduce) and depths[i] > 1]
    if not late:
        return True
    if pair is None or late != [pair.reductions[1]]:
        return False
    first = steps(graph)[0]
    return pair if first.keep == (graph.nodes[pair.reductions[0]].args[0],) else False

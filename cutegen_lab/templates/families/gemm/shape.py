"""A matrix product as the kernels take it: which dimensions of the result are rows, columns and batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.expr import Dims, Dot, Graph


@dataclass(frozen=True)
class Product:
    """``left`` (m, k) times ``right`` (n, k) for each batch: inputs by number, with the space and then k as dims.

    ``m``, ``n`` and ``batch`` are dimensions of the space. n comes last in it, so that results lie densely along n:
    where the reference asks for a transposed result, its operands have changed sides.
    """

    node: int
    left: int
    right: int
    left_dims: Dims
    right_dims: Dims
    m: tuple[int, ...]
    n: tuple[int, ...]
    batch: tuple[int, ...]

    def sizes(self, graph: Graph, workload: Workload) -> tuple[int, int, int, int]:
        """(m, n, k, batches)."""
        k = workload.inputs[self.left].shape[self.left_dims[-1] or 0]
        m, n, batches = (math.prod(graph.space[d] for d in dims) for dims in (self.m, self.n, self.batch))
        return m, n, k, batches


def product(graph: Graph) -> Product | None:
    """The graph's matrix product, where it has one whose last dimension belongs to one operand."""
    dots = list(graph.dots())
    if len(dots) != 1:
        return None
    node, dot = dots[0]
    last = len(graph.space) - 1
    if last < 0:  # of two vectors
        return Product(node, dot.first, dot.second, dot.first_dims, dot.second_dims, (), (), ())
    if (dot.first_dims[last] is None) == (dot.second_dims[last] is None):
        return None
    if dot.second_dims[last] is None:
        dot = Dot(dot.second, dot.first, dot.second_dims, dot.first_dims)
    n = _run(dot.second_dims, dot.first_dims, last)
    only_left = [d for d in range(last) if dot.first_dims[d] is not None and dot.second_dims[d] is None]
    m = _run(dot.first_dims, dot.second_dims, only_left[-1]) if only_left else ()
    batch = tuple(d for d in range(last + 1) if d not in (*m, *n))
    return Product(node, dot.first, dot.second, dot.first_dims, dot.second_dims, m, n, batch)


def _run(mine: Dims, other: Dims, end: int) -> tuple[int, ...]:
    """Dimensions up to ``end`` that only ``mine`` walks, and as one: they lie next to each other in its tensor."""
    start = end
    while start > 0 and mine[start - 1] is not None and other[start - 1] is None and adjacent(mine, (start - 1, start)):
        start -= 1
    return tuple(range(start, end + 1))


def adjacent(dims: Dims, over: Sequence[int]) -> bool:
    """Does a row-major tensor walk all of ``over`` in one even step?"""
    walked = [dims[d] for d in over]
    return None not in walked and walked == list(range(walked[0] or 0, (walked[0] or 0) + len(walked)))

"""Matrix products as the kernels take them: which dimensions of the result are rows, columns and batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.frontend.expr import Dims, Dot, Graph


@dataclass(frozen=True)
class Operand:
    """Input number ``tensor``; ``dims`` are the space's dimensions and then k."""

    tensor: int
    dims: Dims


@dataclass(frozen=True)
class Products:
    """Each of ``pairs`` is a left operand (m, k) times a right one (n, k) for each batch, by their numbers in ``lefts``
    and ``rights``; ``nodes`` are the values of the graph that they make. ``f32``: operands are fp32, and the tensor
    cores multiply their halves, or, ``tf32``, themselves, rounded; ``f8``: of 8 bits; ``as_f16``: of 8 bits, multiplied
    as fp16, which holds them all: of 8-bit numbers, wgmma keeps 13 bits of what it adds up.

    ``m``, ``n`` and ``batch`` are dimensions of the space. n comes last in it, so that results lie densely along n:
    where the reference asks for a transposed result, its operands have changed sides.
    """

    nodes: tuple[int, ...]
    lefts: tuple[Operand, ...]
    rights: tuple[Operand, ...]
    pairs: tuple[tuple[int, int], ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    batch: tuple[int, ...]
    f32: bool
    f8: bool
    as_f16: bool
    tf32: bool = False

    @property
    def halved(self) -> bool:
        """Are operands multiplied as two halves each?"""
        return self.f32 and not self.tf32

    @property
    def along_k(self) -> bool:
        """Does wgmma read them only where they lie densely along k? It transposes numbers of 16 bits alone."""
        return self.f8 or self.tf32

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (*self.lefts, *self.rights)

    @property
    def loads(self) -> tuple[int, int]:
        """Tiles that a step along k needs of the left side and of the right."""
        halves = 2 if self.halved else 1
        return halves * len(self.lefts), halves * len(self.rights)

    @property
    def sums(self) -> int:
        """Accumulators for each result: an fp32 product has one for its large terms, their total, the small ones; one
        of 8 bits the sum of a step along k, and the total."""
        return len(self.pairs) * (3 if self.halved else 2 if self.f8 else 1)

    @property
    def of_8_bits(self) -> bool:
        return self.f8 or self.as_f16

    @property
    def itemsize(self) -> int:
        """Bytes of a number in shared memory."""
        return 1 if self.f8 else 4 if self.tf32 else 2

    def sizes(self, graph: Graph, workload: Workload) -> tuple[int, int, int, int]:
        """(m, n, the longest k, batches)."""
        k = max(workload.inputs[left.tensor].shape[left.dims[-1] or 0] for left in self.lefts)
        m, n, batches = (math.prod(graph.space[d] for d in dims) for dims in (self.m, self.n, self.batch))
        return m, n, k, batches


def products(graph: Graph) -> Products | None:
    """The graph's matrix products, where all lie in the same rows and columns of the result."""
    found = [_sided(dot, len(graph.space) - 1) for _, dot in graph.dots()]
    places = {_place(dot, len(graph.space) - 1) for dot in found if dot is not None}
    if None in found or len(places) != 1:
        return None
    dots = [dot for dot in found if dot is not None]
    lefts = list(dict.fromkeys(Operand(dot.first, dot.first_dims) for dot in dots))
    rights = list(dict.fromkeys(Operand(dot.second, dot.second_dims) for dot in dots))
    pairs = tuple(
        (lefts.index(Operand(d.first, d.first_dims)), rights.index(Operand(d.second, d.second_dims))) for d in dots
    )
    nodes = tuple(index for index, _ in graph.dots())
    if len({(dot.f8, dot.as_f16) for dot in dots}) > 1:
        return None
    f32, f8, as_f16 = all(dot.f32 for dot in dots), dots[0].f8, dots[0].as_f16
    tf32 = f32 and all(dot.tf32 for dot in dots)
    return Products(nodes, tuple(lefts), tuple(rights), pairs, *places.pop(), f32=f32, f8=f8, as_f16=as_f16, tf32=tf32)


def _sided(dot: Dot, last: int) -> Dot | None:
    """The product with the result's last dimension belonging to its second operand, or None where both or none has it
    (of two vectors: as it is)."""
    if last < 0:
        return dot
    if (dot.first_dims[last] is None) == (dot.second_dims[last] is None):
        return None
    if dot.second_dims[last] is None:
        return replace(dot, first=dot.second, second=dot.first, first_dims=dot.second_dims, second_dims=dot.first_dims)
    return dot


def _place(dot: Dot, last: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(m, n, batch)."""
    if last < 0:
        return (), (), ()
    n = _run(dot.second_dims, dot.first_dims, last)
    only_left = [d for d in range(last) if dot.first_dims[d] is not None and dot.second_dims[d] is None]
    m = _run(dot.first_dims, dot.second_dims, only_left[-1]) if only_left else ()
    return m, n, tuple(d for d in range(last + 1) if d not in (*m, *n))


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

"""Matrix products as the kernels take them: which dimensions of the result are m, n and batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.frontend.expr import Dims, Dot, Graph


@dataclass(frozen=True)
class Operand:
    """Input number ``tensor``. ``dims``: its dimensions that correspond to each dimension of the space, and to k."""

    tensor: int
    dims: Dims


@dataclass(frozen=True)
class Products:
    """The matrix products of one kernel: for each batch, a left operand (m, k) times a right operand (n, k).

    ``nodes``: their nodes in the graph. ``pairs``: for each product, the indices of its operands in ``lefts`` and
    ``rights``. ``f32``: fp32 operands, split into two halves each, or rounded to TF32 if ``tf32``. ``f8``: 8-bit
    operands. ``as_f16``: 8-bit operands converted to fp16, because wgmma keeps only 13 bits of 8-bit sums.

    ``m``, ``n`` and ``batch`` are dimensions of the space. n is the last one, so that results are contiguous along n:
    if the reference wants a transposed result, the operands are swapped.
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
        """Whether each operand is split into two halves (split fp16; before Hopper, two TF32 numbers)."""
        return self.f32 and not self.tf32

    @property
    def along_k(self) -> bool:
        """Whether wgmma needs operands that are contiguous along k: it transposes only 16-bit elements."""
        return self.f8 or self.tf32

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (*self.lefts, *self.rights)

    @property
    def loads(self) -> tuple[int, int]:
        """Number of tiles that a step along k loads: (of A operands, of B operands)."""
        halves = 2 if self.halved else 1
        return halves * len(self.lefts), halves * len(self.rights)

    @property
    def sums(self) -> int:
        """Number of accumulators for each result. Split operands need three: large terms, their total, small terms.
        8-bit operands need two: the sum of a step along k, and the total."""
        return len(self.pairs) * (3 if self.halved else 2 if self.f8 else 1)

    @property
    def of_8_bits(self) -> bool:
        return self.f8 or self.as_f16

    @property
    def itemsize(self) -> int:
        """Bytes of an operand's element in shared memory."""
        return 1 if self.f8 else 4 if self.tf32 else 2

    def sizes(self, graph: Graph, workload: Workload) -> tuple[int, int, int, int]:
        """(m, n, the longest k, batches)."""
        k = max(workload.inputs[left.tensor].shape[left.dims[-1] or 0] for left in self.lefts)
        m, n, batches = (math.prod(graph.space[d] for d in dims) for dims in (self.m, self.n, self.batch))
        return m, n, k, batches


def products(graph: Graph) -> Products | None:
    """The graph's matrix products; None if they differ in m, n or batch dimensions."""
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
    """``dot`` with operands swapped if only the first has the result's last dimension. None if both or neither have it;
    products of two vectors are returned unchanged."""
    if last < 0:
        return dot
    if (dot.first_dims[last] is None) == (dot.second_dims[last] is None):
        return None
    if dot.second_dims[last] is None:
        return replace(dot, first=dot.second, second=dot.first, first_dims=dot.second_dims, second_dims=dot.first_dims)
    return dot


def _place(dot: Dot, last: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(m, n, batch) dimensions of the result."""
    if last < 0:
        return (), (), ()
    n = _run(dot.second_dims, dot.first_dims, last)
    only_left = [d for d in range(last) if dot.first_dims[d] is not None and dot.second_dims[d] is None]
    m = _run(dot.first_dims, dot.second_dims, only_left[-1]) if only_left else ()
    return m, n, tuple(d for d in range(last + 1) if d not in (*m, *n))


def _run(mine: Dims, other: Dims, end: int) -> tuple[int, ...]:
    """``end`` and the dimensions before it that only ``mine`` has and that are adjacent in its tensor."""
    start = end
    while start > 0 and mine[start - 1] is not None and other[start - 1] is None and adjacent(mine, (start - 1, start)):
        start -= 1
    return tuple(range(start, end + 1))


def adjacent(dims: Dims, over: Sequence[int]) -> bool:
    """Whether a row-major tensor has a single stride through all of ``over``."""
    walked = [dims[d] for d in over]
    return None not in walked and walked == list(range(walked[0] or 0, (walked[0] or 0) + len(walked)))

"""What a reference computes, as a small typed graph: the form every template family starts from.

A :class:`Graph` is a flat list of nodes in topological order, each naming its operands by index, so sharing is explicit
and equal subexpressions are one node. Every value lives on one *iteration space* (the dimensions everything is
broadcast to); a :class:`Reduce` folds the space's reduced dimensions away, a :class:`Total` what is then left. Values
are fp32 or truth values: families convert at loads and stores. Integers are read to be compared and to index only,
which fp32 does exactly up to 2**24.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cutegen_lab.templates.frontend.spans import Length, Span

Dims = tuple[int | None, ...]
"""For each dimension of the iteration space, the tensor dimension that walks along it (None: broadcast). Several may be
parts of one tensor dimension, the outermost first."""

TRUTH_OPS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "isnan"})
NEUTRAL = {"add": 0.0, "mul": 1.0, "max": -math.inf, "min": math.inf}  # every reduction, and what changes nothing in it


@dataclass(frozen=True)
class Load:
    """One element of input ``tensor`` (an index into the problem's inputs). Where a part of it is read, ``spans`` has
    for each of its dimensions the number of a span of the graph's, or None. ``flipped`` are dimensions walked from
    their end."""

    tensor: int
    dims: Dims
    spans: tuple[int | None, ...] = ()
    flipped: tuple[int, ...] = ()

    args: tuple[int, ...] = field(default=(), init=False)


@dataclass(frozen=True)
class Pick:
    """One element of input ``tensor``: along its dimension ``axis`` the one that ``args[0]`` names (the nearest, where
    that lies beyond an end), along the others as ``dims`` say."""

    tensor: int
    axis: int
    dims: Dims
    args: tuple[int, ...]


@dataclass(frozen=True)
class Const:
    """``source``: where the program has it, of one that is another number in another workload."""

    value: float
    source: str = ""

    args: tuple[int, ...] = field(default=(), init=False)


@dataclass(frozen=True)
class Extent:
    """How many elements a reduction (or ``rows``: a total) folds, as a number (it differs between workloads)."""

    rows: bool = False

    args: tuple[int, ...] = field(default=(), init=False)


@dataclass(frozen=True)
class Size:
    """A constant of the reference that follows from an input's shape, ``length`` to the ``power``. ``name`` is a
    parameter of the kernel."""

    name: str
    length: Length
    power: float = 1.0

    args: tuple[int, ...] = field(default=(), init=False)

    def text(self, names: Sequence[str]) -> str:
        length = self.length.text(names)
        return length if self.power == 1.0 else f"({length}) ** {self.power}"


@dataclass(frozen=True)
class Index:
    """Position along the reduced dimensions, as a number: exact in fp32 up to 2**24."""

    args: tuple[int, ...] = field(default=(), init=False)


@dataclass(frozen=True)
class Place:
    """Position along one dimension of the space, as a number: exact in fp32 up to 2**24."""

    dim: int

    args: tuple[int, ...] = field(default=(), init=False)


@dataclass(frozen=True)
class Map:
    """An elementwise operation; ``op`` is one of the names that ``emit/cute_text.py`` can write. ``number`` is an
    integer as PyTorch makes a float of it, rounded where it is long."""

    op: str
    args: tuple[int, ...]


@dataclass(frozen=True)
class Reduce:
    """``op`` (one of :data:`NEUTRAL`) folded over the reduced dimensions. max and min let NaN through."""

    op: str
    args: tuple[int, ...]


@dataclass(frozen=True)
class Scan:
    """``op`` (add or mul) folded over the reduced dimension up to and with each position; ``reverse``: from it on."""

    op: str
    args: tuple[int, ...]
    reverse: bool = False


@dataclass(frozen=True)
class Total:
    """``op`` folded over every dimension that is not reduced, of a value with one element for each of them."""

    op: str
    args: tuple[int, ...]


@dataclass(frozen=True)
class Dot:
    """One element of a matrix product: input ``first`` times input ``second``, summed over k. From there on it is a
    value like any other. ``first_dims`` and ``second_dims`` say, for each dimension of the iteration space and then for
    k, which of the tensor's dimensions walks along it. ``f32``: its inputs are fp32; ``tf32``: and may be
    rounded to TF32; ``f8``: of 8 bits, and its results of bf16's precision; ``as_f16``: of 8 bits, and its results
    finer than tensor cores make of them."""

    first: int
    second: int
    first_dims: Dims
    second_dims: Dims
    f32: bool = False
    f8: bool = False
    as_f16: bool = False
    tf32: bool = False

    args: tuple[int, ...] = field(default=(), init=False)

    def along(self, dim: int) -> bool:
        """Does the product differ along a dimension of the space?"""
        return self.first_dims[dim] is not None or self.second_dims[dim] is not None


@dataclass(frozen=True)
class Pool:
    """The mean of a window of input ``tensor``, (…, height, width). ``dims`` say, for each dimension of the iteration
    space, which of the result's walks along it. ``window``, ``stride`` and ``padding`` are (rows, columns); padding
    is zeros, which count where ``count_padding`` holds, or ``divisor`` elements do whatever is there."""

    tensor: int
    dims: Dims
    window: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    count_padding: bool
    divisor: int | None = None

    args: tuple[int, ...] = field(default=(), init=False)


Node = Load | Pick | Dot | Pool | Const | Size | Extent | Index | Place | Map | Reduce | Scan | Total


@dataclass(frozen=True)
class Output:
    """Output number ``position`` of the problem is node ``node``, laid out as ``dims`` say."""

    node: int
    dims: Dims


@dataclass(frozen=True)
class Graph:
    """``extent_from[d]`` is how the size of space dimension ``d`` follows from the inputs' shapes in every workload.
    ``reduced`` lists adjacent space dimensions, outermost first; empty: purely elementwise. ``names`` suggests a
    variable name for a node; ``spans`` are the parts of inputs that loads read."""

    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    space: tuple[int, ...]
    extent_from: tuple[Length, ...]
    reduced: tuple[int, ...] = ()
    names: tuple[tuple[int, str], ...] = ()
    spans: tuple[Span, ...] = ()

    def padding(self, load: Load) -> int:
        """How many zeros stand before what ``load`` reads, along the reduced dimension."""
        axes = [axis for d in self.reduced if (axis := load.dims[d]) is not None]
        numbers = [load.spans[axis] for axis in axes] if load.spans else []
        starts = [self.spans[number].start for number in numbers if number is not None]
        return max([0, *(-start.plus for start in starts if start.tensor is None)])

    def loads(self) -> Iterator[tuple[int, Load]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Load):
                yield index, node

    def picks(self) -> Iterator[tuple[int, Pick]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Pick):
                yield index, node

    def scans(self) -> Iterator[tuple[int, Scan]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Scan):
                yield index, node

    def totals(self) -> Iterator[tuple[int, Total]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Total):
                yield index, node

    def dots(self) -> Iterator[tuple[int, Dot]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Dot):
                yield index, node

    def pools(self) -> Iterator[tuple[int, Pool]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Pool):
                yield index, node

    def places(self) -> Iterator[tuple[int, Place]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Place):
                yield index, node

    def sizes(self) -> list[Size]:
        return [node for node in self.nodes if isinstance(node, Size)]

    def varies(self, index: int) -> bool:
        """Does the value differ along the reduced dimensions (for elementwise graphs: anywhere)?"""
        return self._varying()[index]

    def _varying(self) -> list[bool]:
        result: list[bool] = []
        for node in self.nodes:
            if isinstance(node, Load):
                result.append(not self.reduced or any(node.dims[d] is not None for d in self.reduced))
            elif isinstance(node, Pick):
                own = not self.reduced or any(node.dims[d] is not None for d in self.reduced)
                result.append(own or result[node.args[0]])
            elif isinstance(node, Dot):
                result.append(not self.reduced or any(node.along(d) for d in self.reduced))
            elif isinstance(node, Index | Scan | Pool):
                result.append(True)
            elif isinstance(node, Place):
                result.append(not self.reduced or node.dim in self.reduced)
            elif isinstance(node, Map):
                result.append(any(result[a] for a in node.args))
            else:
                result.append(False)
        return result

    def fixed(self, dim: int) -> list[bool]:
        """For each node: is its value the same all along dimension ``dim`` of the space (no reductions in it)?"""
        result: list[bool] = []
        for node in self.nodes:
            own = not isinstance(node, Dot | Index | Pool | Scan)
            own = node.dims[dim] is None if isinstance(node, Load | Pick) else own
            own = node.dim != dim if isinstance(node, Place) else own
            result.append(own and all(result[a] for a in node.args))
        return result

    def depths(self) -> list[int]:
        """How many reductions, one after another, each value waits for. A :class:`Reduce` of depth k ends pass k."""
        result: list[int] = []
        for node in self.nodes:
            below = max((result[a] for a in node.args), default=0)
            result.append(below + 1 if isinstance(node, Reduce) else below)
        return result

    def late(self) -> list[bool]:
        """Which values wait for a total."""
        result: list[bool] = []
        for node in self.nodes:
            result.append(isinstance(node, Total) or any(result[a] for a in node.args))
        return result

    def single(self) -> list[bool]:
        """Which values are one number, the same in the whole space, and not reduced from it but by totals."""
        result: list[bool] = []
        for node in self.nodes:
            if isinstance(node, Load):
                result.append(all(dim is None for dim in node.dims))
            elif isinstance(node, Map):
                result.append(all(result[a] for a in node.args))
            else:
                result.append(isinstance(node, Const | Size | Extent | Total))
        return result

    def is_truth(self, index: int) -> bool:
        node = self.nodes[index]
        return isinstance(node, Map) and node.op in TRUTH_OPS

    def users(self) -> list[int]:
        """How often each node is used, by nodes and outputs."""
        count = [0] * len(self.nodes)
        for node in self.nodes:
            for arg in node.args:
                count[arg] += 1
        for output in self.outputs:
            count[output.node] += 1
        return count

    def pruned(self) -> Graph:
        """The same graph without nodes that no output needs."""
        live: set[int] = set()
        stack = [output.node for output in self.outputs]
        while stack:
            index = stack.pop()
            if index not in live:
                live.add(index)
                stack.extend(self.nodes[index].args)
        new_index = {old: new for new, old in enumerate(sorted(live))}
        nodes = tuple(_renumbered(self.nodes[old], new_index) for old in sorted(live))
        outputs = tuple(replace(o, node=new_index[o.node]) for o in self.outputs)
        names = tuple((new_index[i], name) for i, name in self.names if i in live)
        return replace(self, nodes=nodes, outputs=outputs, names=names)


def _renumbered(node: Node, new_index: dict[int, int]) -> Node:
    if isinstance(node, Map | Reduce | Scan | Total | Pick):
        return replace(node, args=tuple(new_index[a] for a in node.args))
    return node


class Builder:
    """Grows a node list, giving equal expressions one index and simplifying what is trivially simpler."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.names: dict[int, str] = {}
        self._index: dict[Node, int] = {}

    def add(self, node: Node, name: str = "") -> int:
        index = self._index.get(node)
        if index is None:
            index = self._index[node] = len(self.nodes)
            self.nodes.append(node)
        if name:
            self.names.setdefault(index, name)
        return index

    def const(self, value: float) -> int:
        return self.add(Const(float(value)))

    def value(self, index: int) -> float | None:
        """The constant a node is in every workload, or None."""
        node = self.nodes[index]
        return node.value if isinstance(node, Const) and not node.source else None

    def map(self, op: str, *args: int, name: str = "") -> int:
        neutral = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}.get(op)
        if neutral is not None and self.value(args[1]) == neutral:
            return args[0]
        if op in ("add", "mul") and self.value(args[0]) == neutral:
            return args[1]
        return self.add(Map(op, args), name)

    def reduce(self, op: str, arg: int, name: str = "") -> int:
        return self.add(Reduce(op, (arg,)), name)

"""The computation of a reference as a small typed graph: the input of every template family.

A :class:`Graph` is a list of nodes in topological order. Nodes refer to operands by index; equal subexpressions are one
node. All values share one *iteration space*: the dimensions to which everything is broadcast. A :class:`Reduce` folds
the reduced dimensions of the space, a :class:`FullReduce` the remaining ones. Values are fp32 or booleans; families
convert at loads and stores. Integers may only be compared or used as an index, which is exact in fp32 up to 2**24.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cutegen_lab.templates.frontend.shape_exprs import ShapeExpr, Slice

Dims = tuple[int | None, ...]
"""For each dimension of the iteration space, the tensor dimension along it (None: broadcast). A tensor dimension may
occur several times, if a view splits it: the outermost part first."""

TRUTH_OPS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "isnan"})
NEUTRAL = {"add": 0.0, "mul": 1.0, "max": -math.inf, "min": math.inf}  # neutral element of every reduction


@dataclass(frozen=True)
class Load:
    """One element of input ``tensor`` (its position in the problem's inputs). ``slices``: for each dimension, the index
    of a slice of the graph, or None for the whole dimension. ``flipped``: dimensions that are read in reverse."""

    tensor: int
    dims: Dims
    slices: tuple[int | None, ...] = ()
    flipped: tuple[int, ...] = ()

    args: tuple[int, ...] = field(default=(), init=False)


@dataclass(frozen=True)
class Gather:
    """One element of input ``tensor``. Its index along dimension ``axis`` is ``args[0]``, clamped to the tensor;
    ``dims`` gives the other indices. ``wraps``: negative indices count from the end."""

    tensor: int
    axis: int
    dims: Dims
    args: tuple[int, ...]
    wraps: bool = False


@dataclass(frozen=True)
class Const:
    """A number. ``source``: its position in the program, if it depends on the workload."""

    value: float
    source: str = ""

    args: tuple[int, ...] = field(default=(), init=False)


@dataclass(frozen=True)
class Extent:
    """Number of elements that a reduction (``rows``: a full reduction) folds. Depends on the workload."""

    rows: bool = False

    args: tuple[int, ...] = field(default=(), init=False)


@dataclass(frozen=True)
class Size:
    """A constant that follows from the shape of an input: ``length`` to the power ``power``. ``name``: the kernel
    parameter that holds it."""

    name: str
    length: ShapeExpr
    power: float = 1.0

    args: tuple[int, ...] = field(default=(), init=False)

    def text(self, names: Sequence[str]) -> str:
        length = self.length.text(names)
        return length if self.power == 1.0 else f"({length}) ** {self.power}"


@dataclass(frozen=True)
class ReducedIota:
    """Index along the reduced dimensions (iota): exact in fp32 up to 2**24."""

    args: tuple[int, ...] = field(default=(), init=False)


@dataclass(frozen=True)
class Iota:
    """Index along one dimension of the space: exact in fp32 up to 2**24."""

    dim: int

    args: tuple[int, ...] = field(default=(), init=False)


@dataclass(frozen=True)
class Elementwise:
    """An elementwise operation. ``op``: a name that ``emit/cute_text.py`` can write. The operation ``number`` rounds a
    large integer to float as PyTorch does."""

    op: str
    args: tuple[int, ...]


@dataclass(frozen=True)
class Reduce:
    """``op`` (one of :data:`NEUTRAL`) folded over the reduced dimensions. max and min propagate NaN."""

    op: str
    args: tuple[int, ...]


@dataclass(frozen=True)
class Scan:
    """Inclusive scan with ``op`` (add or mul) along the reduced dimension; ``reverse``: from its end."""

    op: str
    args: tuple[int, ...]
    reverse: bool = False


@dataclass(frozen=True)
class FullReduce:
    """A full reduction: ``op`` folded over all dimensions that are not reduced. The value has one element for each
    index of the reduced dimensions."""

    op: str
    args: tuple[int, ...]


@dataclass(frozen=True)
class Dot:
    """One element of a matrix product: input ``first`` times input ``second``, summed over k.

    ``first_dims``, ``second_dims``: for each dimension of the iteration space, then for k, the dimension of the tensor.
    ``f32``: inputs are fp32. ``tf32``: inputs may be rounded to TF32. ``f8``: inputs have 8 bits and bf16 precision is
    enough for the result. ``as_f16``: inputs have 8 bits and the result must be more precise than wgmma's 8-bit sums.
    """

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
        """Whether the product varies along a dimension of the space."""
        return self.first_dims[dim] is not None or self.second_dims[dim] is not None


@dataclass(frozen=True)
class Pool:
    """The mean of a window of input ``tensor`` (…, height, width). ``dims``: for each dimension of the iteration space,
    the dimension of the pooled result. ``window``, ``stride``, ``padding``: (rows, columns) in elements. Padding with
    zeros counts in the mean if ``count_padding``; ``divisor`` replaces the count."""

    tensor: int
    dims: Dims
    window: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    count_padding: bool
    divisor: int | None = None

    args: tuple[int, ...] = field(default=(), init=False)


Node = (
    Load | Gather | Dot | Pool | Const | Size | Extent | ReducedIota | Iota | Elementwise | Reduce | Scan | FullReduce
)


@dataclass(frozen=True)
class Output:
    """Output number ``position`` of the problem is node ``node``; ``dims`` is its layout."""

    node: int
    dims: Dims


@dataclass(frozen=True)
class Graph:
    """``extent_from[d]``: formula that gives the size of dimension ``d`` of the space from input shapes in every
    workload. ``reduced``: adjacent dimensions of the space, outermost first; empty if the graph is elementwise.
    ``names``: suggested variable names by node. ``slices``: the slices of inputs that loads read."""

    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    space: tuple[int, ...]
    extent_from: tuple[ShapeExpr, ...]
    reduced: tuple[int, ...] = ()
    names: tuple[tuple[int, str], ...] = ()
    slices: tuple[Slice, ...] = ()

    def padding(self, load: Load) -> int:
        """Number of zeros before the elements that ``load`` reads, along the reduced dimension."""
        axes = [axis for d in self.reduced if (axis := load.dims[d]) is not None]
        numbers = [load.slices[axis] for axis in axes] if load.slices else []
        starts = [self.slices[number].start for number in numbers if number is not None]
        return max([0, *(-start.plus for start in starts if start.tensor is None)])

    def loads(self) -> Iterator[tuple[int, Load]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Load):
                yield index, node

    def gathers(self) -> Iterator[tuple[int, Gather]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Gather):
                yield index, node

    def scans(self) -> Iterator[tuple[int, Scan]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Scan):
                yield index, node

    def full_reductions(self) -> Iterator[tuple[int, FullReduce]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, FullReduce):
                yield index, node

    def dots(self) -> Iterator[tuple[int, Dot]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Dot):
                yield index, node

    def pools(self) -> Iterator[tuple[int, Pool]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Pool):
                yield index, node

    def iotas(self) -> Iterator[tuple[int, Iota]]:
        for index, node in enumerate(self.nodes):
            if isinstance(node, Iota):
                yield index, node

    def sizes(self) -> list[Size]:
        return [node for node in self.nodes if isinstance(node, Size)]

    def varies(self, index: int) -> bool:
        """Whether the value varies along the reduced dimensions (in elementwise graphs: along any dimension)."""
        return self._varying()[index]

    def _varying(self) -> list[bool]:
        result: list[bool] = []
        for node in self.nodes:
            if isinstance(node, Load):
                result.append(not self.reduced or any(node.dims[d] is not None for d in self.reduced))
            elif isinstance(node, Gather):
                own = not self.reduced or any(node.dims[d] is not None for d in self.reduced)
                result.append(own or result[node.args[0]])
            elif isinstance(node, Dot):
                result.append(not self.reduced or any(node.along(d) for d in self.reduced))
            elif isinstance(node, ReducedIota | Scan | Pool):
                result.append(True)
            elif isinstance(node, Iota):
                result.append(not self.reduced or node.dim in self.reduced)
            elif isinstance(node, Elementwise):
                result.append(any(result[a] for a in node.args))
            else:
                result.append(False)
        return result

    def fixed(self, dim: int) -> list[bool]:
        """For each node, whether its value is constant along dimension ``dim`` of the space. For graphs without
        reductions."""
        result: list[bool] = []
        for node in self.nodes:
            own = not isinstance(node, Dot | ReducedIota | Pool | Scan)
            own = node.dims[dim] is None if isinstance(node, Load | Gather) else own
            own = node.dim != dim if isinstance(node, Iota) else own
            result.append(own and all(result[a] for a in node.args))
        return result

    def depths(self) -> list[int]:
        """For each node, the number of consecutive reductions it depends on. A :class:`Reduce` of depth k is computed
        in pass k."""
        result: list[int] = []
        for node in self.nodes:
            below = max((result[a] for a in node.args), default=0)
            result.append(below + 1 if isinstance(node, Reduce) else below)
        return result

    def late(self) -> list[bool]:
        """For each node, whether it depends on a full reduction."""
        result: list[bool] = []
        for node in self.nodes:
            result.append(isinstance(node, FullReduce) or any(result[a] for a in node.args))
        return result

    def single(self) -> list[bool]:
        """For each node, whether it is a single number, computed only from constants and full reductions."""
        result: list[bool] = []
        for node in self.nodes:
            if isinstance(node, Load):
                result.append(all(dim is None for dim in node.dims))
            elif isinstance(node, Elementwise):
                result.append(all(result[a] for a in node.args))
            else:
                result.append(isinstance(node, Const | Size | Extent | FullReduce))
        return result

    def is_truth(self, index: int) -> bool:
        node = self.nodes[index]
        return isinstance(node, Elementwise) and node.op in TRUTH_OPS

    def users(self) -> list[int]:
        """Number of uses of each node, by nodes and outputs."""
        count = [0] * len(self.nodes)
        for node in self.nodes:
            for arg in node.args:
                count[arg] += 1
        for output in self.outputs:
            count[output.node] += 1
        return count

    def pruned(self) -> Graph:
        """The graph without nodes that no output needs."""
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
    if isinstance(node, Elementwise | Reduce | Scan | FullReduce | Gather):
        return replace(node, args=tuple(new_index[a] for a in node.args))
    return node


class Builder:
    """Builds a node list; equal expressions share one node, and trivial expressions are simplified."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.names: dict[int, str] = {}  # names by node: from the reference's text, or else from an operator's rule
        self._named: set[int] = set()  # nodes with a name from the reference's text
        self._index: dict[Node, int] = {}

    def add(self, node: Node, name: str = "") -> int:
        index = self._index.get(node)
        if index is None:
            index = self._index[node] = len(self.nodes)
            self.nodes.append(node)
        if name:
            self.names.setdefault(index, name)
        return index

    def set_name(self, index: int, name: str) -> None:
        """Gives a node a name from the reference's text, unless it has one from there already."""
        if index not in self._named:
            self._named.add(index)
            self.names[index] = name

    def const(self, value: float) -> int:
        return self.add(Const(float(value)))

    def value(self, index: int) -> float | None:
        """The constant value of a node in every workload, or None."""
        node = self.nodes[index]
        return node.value if isinstance(node, Const) and not node.source else None

    def map(self, op: str, *args: int, name: str = "") -> int:
        neutral = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}.get(op)
        if neutral is not None and self.value(args[1]) == neutral:
            return args[0]
        if op in ("add", "mul") and self.value(args[0]) == neutral:
            return args[1]
        return self.add(Elementwise(op, args), name)

    def reduce(self, op: str, arg: int, name: str = "") -> int:
        return self.add(Reduce(op, (arg,)), name)

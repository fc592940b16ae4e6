"""The graph under construction. Rules for operators add nodes to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import Workload
from cutegen_lab.templates.frontend.axes import Axes
from cutegen_lab.templates.frontend.expr import (
    TRUTH_OPS,
    Builder,
    Dims,
    Dot,
    Elementwise,
    Extent,
    FullReduce,
    Gather,
    Iota,
    Load,
    Pool,
    Reduce,
    ReducedIota,
    Scan,
)
from cutegen_lab.templates.frontend.shape_exprs import Slice


@dataclass(frozen=True)
class Value:
    """A tensor of the reference: a node of the graph and one symbol for each dimension."""

    node: int
    axes: tuple[int, ...]


Scalar = int | float | bool
Operand = Value | Scalar


class Unsupported(Exception):
    """The templates cannot compute the reference. The message names the part that they do not cover."""


REGROUPED = "a slice, an index or a matrix product along a dimension that a view has regrouped"


class Lowering:
    """Builds one graph. ``reduced``: symbols of the dimensions that all reductions of the graph fold. ``totalled``:
    symbols that full reductions fold."""

    def __init__(self) -> None:
        self.build = Builder()
        self.axes = Axes()
        self.reduced: tuple[int, ...] | None = None
        self.totalled: tuple[int, ...] | None = None
        self.spaces: list[tuple[int, ...]] = []  # axes of reduced values: any may become the iteration space
        self.products: dict[int, tuple[int, ...]] = {}  # axes of each matrix product and each pooling
        self.slices: list[Slice] = []  # slices of inputs
        self.largest = math.inf  # largest finite number of the current operation's result dtype
        self.tested: set[int] = set()  # nodes of numbers that are used as booleans: true if not 0
        self._depends: dict[int, frozenset[int]] = {}

    # --- values ---

    def load(self, tensor: int, shape: Sequence[int]) -> Value:
        axes = tuple(self.axes.fresh(size) for size in shape)
        return Value(self.build.add(Load(tensor, axes)), axes)

    def const(self, value: float) -> Value:
        return Value(self.build.const(value), ())

    def value(self, operand: Operand) -> Value:
        return operand if isinstance(operand, Value) else self.const(float(operand))

    def map(self, op: str, *operands: Operand, name: str = "") -> Value:
        values = [self._suited(op, at, self.value(o)) for at, o in enumerate(operands)]
        axes = self.axes.broadcast([v.axes for v in values])
        return Value(self.build.map(op, *(v.node for v in values), name=name), axes)

    def _suited(self, op: str, at: int, value: Value) -> Value:
        """``value`` converted to what operand ``at`` of ``op`` must be: a boolean or a number."""
        node = self.build.nodes[value.node]
        truth = isinstance(node, Elementwise) and node.op in TRUTH_OPS
        if op in ("and", "or", "not") or (op == "where" and at == 0):
            if truth:
                return value
            self.tested.add(value.node)
            return Value(self.build.map("ne", value.node, self.build.const(0.0)), value.axes)
        if not truth:
            return value
        return Value(self.build.map("where", value.node, self.build.const(1.0), self.build.const(0.0)), value.axes)

    def is_input(self, value: Value) -> bool:
        return isinstance(self.build.nodes[value.node], Load)

    def constant_of(self, value: Operand) -> float | None:
        return self.build.value(value.node) if isinstance(value, Value) else float(value)

    def is_truth(self, value: Value, workload: Workload) -> bool:
        node = self.build.nodes[value.node]
        if isinstance(node, Load):
            return workload.inputs[node.tensor].dtype is DType.BOOL
        return isinstance(node, Elementwise) and node.op in TRUTH_OPS

    # --- views ---

    def split(self, value: Value, dim: int, count: int) -> Value:
        """Splits ``dim`` into (``count``, rest)."""
        at = dim % len(value.axes)
        parts = self.axes.split(value.axes[at], (count, self.axes.size(value.axes[at]) // count))
        return Value(value.node, (*value.axes[:at], *parts, *value.axes[at + 1 :]))

    def whole(self, symbol: int) -> int:
        """Returns ``symbol``. Raises Unsupported if a view has regrouped its dimension."""
        if not self.axes.whole(symbol):
            raise Unsupported(REGROUPED)
        return self.axes.find(symbol)

    def counted(self, symbol: int) -> int:
        """Returns ``symbol``. Raises Unsupported if indices along it are not exact in fp32."""
        if self.axes.size(symbol) > 1 << 24:
            raise Unsupported(f"an index over {self.axes.size(symbol)} elements (exact only up to 2**24)")
        return symbol

    # --- matrix products ---

    def dot(self, a: Value, b: Value) -> Value:
        """Matrix product (…, m, k) @ (…, k, n) with broadcast leading dimensions: (…, m, n), with new symbols."""
        first, second = self._operand(a), self._operand(b)
        rank = max(len(a.axes), len(b.axes)) - 2
        pairs = [(self._from_right(a, d - rank - 2), self._from_right(b, d - rank - 2)) for d in range(rank)]
        pairs += [(a.axes[-2], None), (None, b.axes[-1])]
        axes, first_dims, second_dims = [], list[int | None](), list[int | None]()
        for mine, theirs in pairs:
            size = max(self.axes.size(s) for s in (mine, theirs) if s is not None)
            first_dims.append(self._walking(first, mine, size))
            second_dims.append(self._walking(second, theirs, size))
            axes.append(self.axes.fresh(size, made=first_dims[-1] is None and second_dims[-1] is None))
        k = self.axes.size(a.axes[-1])
        first_dims.append(self._walking(first, a.axes[-1], k))
        second_dims.append(self._walking(second, b.axes[-2], k))
        node = self.build.add(Dot(first.tensor, second.tensor, tuple(first_dims), tuple(second_dims)))
        return Value(node, self.products.setdefault(node, tuple(axes)))

    def _operand(self, value: Value) -> Load:
        node = self.build.nodes[value.node]
        if not isinstance(node, Load):
            raise Unsupported("a matrix product of a computed value")
        if node.slices:
            raise Unsupported("a matrix product of a slice of an input")
        return node

    def _from_right(self, value: Value, at: int) -> int | None:
        return value.axes[at] if len(value.axes) >= -at else None

    def _walking(self, load: Load, symbol: int | None, size: int) -> int | None:
        """The dimension of the tensor for ``symbol``; None if the tensor is broadcast to ``size`` along it."""
        if symbol is None or self.axes.size(symbol) != size:
            return None
        if symbol in load.dims and self.axes.whole(symbol):
            return load.dims.index(symbol)
        if self.depends(self.build.add(load)).intersection(self.axes.parts(symbol)):
            raise Unsupported(REGROUPED)
        return None

    # --- windows ---

    def pool(self, value: Value, sizes: Sequence[int], pool: Callable[[int, Dims], Pool]) -> Value:
        """Pooling of a whole input: a window for each element of the result. ``sizes``: the result's last dimensions.
        ``pool`` makes the node from the number of the input and a symbol for each dimension of the result. Raises
        Unsupported."""
        load = self.build.nodes[value.node]
        if not isinstance(load, Load) or load.slices or load.flipped or value.axes != load.dims:
            raise Unsupported("pooling of a value other than a whole input")
        axes = (*value.axes[: -len(sizes)], *(self.axes.fresh(size) for size in sizes))
        node = self.build.add(pool(load.tensor, axes))
        self.products[node] = axes
        return Value(node, axes)

    # --- reductions ---

    def reduce(
        self, op: str, value: Value, dims: Sequence[int] | int | None, keepdim: bool = False, name: str = ""
    ) -> Value:
        """Folds ``dims``. All reductions of a graph must fold the same dimensions of the iteration space; full
        reductions fold all others, together with these or after them."""
        value = self._suited("", 0, value)
        chosen = self._dims(value, dims)
        symbols = self.axes.resolve([value.axes[d] for d in chosen])
        real = tuple(s for s in symbols if not self.axes.is_made(s))
        node = value.node
        if rest := self._beyond(real):
            if len(rest) < len(real):
                first = self._at(value, self.reduced)
                if not first:  # a view has joined a dimension that is folded with one that is not
                    raise Unsupported("reductions over different dimensions in one reference")
                return self.reduce(op, self.reduce(op, value, first, True), dims, keepdim, name)
            if self.totalled is not None and set(self.axes.resolve(self.totalled)) != set(rest):
                raise Unsupported("full reductions over different dimensions in one reference")
            if not self.depends(node) & set(rest) or self.depends(node) & set(self.axes.resolve(self.reduced or ())):
                raise Unsupported("reductions over different dimensions in one reference")
            self.totalled = rest
            node = self.build.add(FullReduce(op, (node,)), name)
        elif real:
            self._enter(real, value)
            if self.depends(node) & set(real):
                node = self.build.reduce(op, node, name)
            elif op == "add":
                node = self.build.map("mul", node, self.build.add(Extent()))
        return Value(node, self._folded(value, chosen, keepdim))

    def extent(self, value: Value, dims: Sequence[int] | int | None) -> Value:
        """Number of elements that a reduction over ``dims`` folds."""
        symbols = self.axes.resolve([value.axes[d] for d in self._dims(value, dims)])
        real = tuple(s for s in symbols if not self.axes.is_made(s))
        if not real:
            return self.const(1.0)
        rest = self._beyond(real)
        count = self.const(1.0)
        if len(rest) < len(real):
            if not rest:
                self._enter(real, value)
            count = Value(self.build.add(Extent()), ())
        return self.map("mul", count, Value(self.build.add(Extent(rows=True)), ())) if rest else count

    def position(self, value: Value, dim: int) -> Value:
        """Index along the reduced dimension ``dim``, in the shape of ``value``."""
        self._enter(self.axes.resolve([self.counted(value.axes[dim])]), value)
        return Value(self.build.add(ReducedIota()), value.axes)

    def place(self, symbol: int) -> Value:
        """Index along the dimension of ``symbol``."""
        symbol = self.counted(self.whole(symbol))
        return Value(self.build.add(Iota(symbol)), (symbol,))

    # --- scans ---

    def scan(self, op: str, value: Value, dim: int) -> Value:
        if any(isinstance(node, Reduce) for node in self.build.nodes):
            raise Unsupported("a scan in one kernel with a reduction")
        self._enter(self.axes.resolve([value.axes[dim]]), value)
        return Value(self.build.add(Scan(op, (value.node,))), value.axes)

    def mean(self, value: Value, dims: Sequence[int] | int | None, keepdim: bool, name: str = "mean") -> Value:
        total = self.reduce("add", value, dims, keepdim)
        return self.map("div", total, self.extent(value, dims), name=name)

    def variance(self, value: Value, dims: Any, correction: float, keepdim: bool) -> tuple[Value, Value]:
        """(variance, mean) in two passes, as accurate as PyTorch's Welford algorithm. A second pass is cheap: the row
        is in registers."""
        mean = self.mean(value, dims, True)
        centred = self.map("sub", value, mean, name="centred")
        total = self.reduce("add", self.map("mul", centred, centred), dims, keepdim)
        count = self.extent(value, dims)
        if correction:
            count = self.map("sub", count, correction)
        if correction > 1:  # PyTorch's divisor is at least 0
            count = self.map("max", count, 0.0)
        if not keepdim:
            mean = Value(mean.node, self._folded(value, self._dims(value, dims), False))
        return self.map("div", total, count, name="variance"), mean

    def depends(self, node: int) -> frozenset[int]:
        """Symbols along which the value of a node varies."""
        if node not in self._depends:
            item = self.build.nodes[node]
            if isinstance(item, Load):
                found = frozenset(d for d in item.dims if d is not None)
            elif isinstance(item, Dot | Pool):
                found = frozenset(self.products[node])
            elif isinstance(item, Gather):
                found = self.depends(item.args[0]).union(d for d in item.dims if d is not None)
            elif isinstance(item, FullReduce):
                found = frozenset()
            elif isinstance(item, Iota):
                found = frozenset((item.dim,))
            elif isinstance(item, ReducedIota):
                found = frozenset(self.reduced or ())
            else:
                found = frozenset().union(*(self.depends(a) for a in item.args)) if item.args else frozenset()
            self._depends[node] = found
        found = frozenset(self.axes.resolve(tuple(self._depends[node])))
        if isinstance(self.build.nodes[node], Reduce):
            found -= set(self.axes.resolve(self.reduced or ()))
        return found

    def _beyond(self, symbols: tuple[int, ...]) -> tuple[int, ...]:
        """The ``symbols`` that are not reduced, if a full reduction can fold exactly these; otherwise ()."""
        reduced = set(self.axes.resolve(self.reduced or ()))
        rest = tuple(s for s in symbols if s not in reduced)
        return rest if reduced and len(rest) in (len(symbols), len(symbols) - len(reduced)) else ()

    def _at(self, value: Value, symbols: Sequence[int] | None) -> list[int]:
        """Dimensions of a value that have the ``symbols``."""
        wanted = set(self.axes.resolve(symbols or ()))
        return [d for d, s in enumerate(value.axes) if wanted.issuperset(self.axes.parts(s))]

    def _enter(self, symbols: tuple[int, ...], value: Value) -> None:
        if self.reduced is None:
            self.reduced = symbols
        elif self.axes.resolve(self.reduced) != self.axes.resolve(symbols):
            raise Unsupported("reductions over different dimensions in one reference")
        self.spaces.append(value.axes)

    def _dims(self, value: Value, dims: Sequence[int] | int | None) -> list[int]:
        rank = len(value.axes)
        if dims is None or (isinstance(dims, Sequence) and not dims):
            return list(range(rank))
        wanted = [dims] if isinstance(dims, int) else list(dims)
        return sorted(d % rank for d in wanted) if rank else []

    def _folded(self, value: Value, chosen: Sequence[int], keepdim: bool) -> tuple[int, ...]:
        if keepdim:
            return tuple(self.axes.fresh(1, made=True) if d in chosen else s for d, s in enumerate(value.axes))
        return tuple(s for d, s in enumerate(value.axes) if d not in chosen)
